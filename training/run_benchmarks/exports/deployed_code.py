"""The code that a run's hosts got, where the checkout still has it to the last byte."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from run_benchmarks.exports.planned_run import ExportedPlan
from run_benchmarks.exports.run_files import RunFile, looked_at
from run_benchmarks.results.folder import as_list
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.stages.tree import END_MARK, Tree, extern_folders, mount_points, pack_tree
from utils.errors import FlagPerfError

SHARED = ("benchmarks/__init__.py", "benchmarks/driver/", "benchmarks/common/", "utils/")
LONGEST_PATH = 4096  # PATH_MAX of Linux
LONGEST_FOLDERS = 2**16  # characters of all that are made: each, and each above it, is an entry of the tree


def digest_that_ran(results: Sequence[RoundResult]) -> str:
    """SHA-256 of the tree that the hosts got; empty where no round says it, as before schema 3."""
    digests = (each.provenance.harness.tree for each in results if each.provenance)
    return next(filter(None, digests), "")


def tree_today(plan: ExportedPlan, training_dir: Path) -> Tree:
    """What the hosts would get of `training_dir` with this plan.

    Raises:
        FlagPerfError: something there cannot be packed, or the plan names what can be no path.
    """
    names = ("flagperf_path_container", "log_path_container", "log_path")
    *paths, log_path = (plan.run.get(name) for name in names)
    _check_lengths([*map(str, (*paths, log_path)), *(path for case in plan.cases for path in case.paths())])
    mounts = mount_points(*map(str, paths)) if all(paths) else ()
    folders = (*mounts, *extern_folders(case.files for case in plan.cases))
    if sum(map(len, folders)) > LONGEST_FOLDERS:
        raise FlagPerfError(f"the plan names folders of more than {LONGEST_FOLDERS} characters together")
    try:
        return pack_tree(training_dir, folders, Path(log_path) if isinstance(log_path, str) else None)
    except (
        ValueError,
        RuntimeError,
    ) as error:  # a stranger's paths: with a NUL, half a character, in a circle
        raise FlagPerfError(f"the plan names a path that is none: {error}") from error


def _check_lengths(paths: Iterable[str]) -> None:
    """A stranger's path of very many parts takes time and memory by the square of their number."""
    if any(len(path) > LONGEST_PATH for path in paths):
        raise FlagPerfError(f"the plan names a path that is none: it has more than {LONGEST_PATH} characters")


def code_of(plan: ExportedPlan, digest: str, training_dir: Path) -> dict[str, bytes]:
    """Path -> content of the files that the cases ran.

    Args:
        digest: of the tree that ran.

    Raises:
        FlagPerfError: the code in `training_dir` is not what ran, or nobody can tell.
    """
    if not digest:
        raise FlagPerfError("the run does not say which code ran, as before schema 3")
    tree = tree_today(plan, training_dir)
    if tree.digest != digest:
        raise FlagPerfError(f"the code in {training_dir} is not what ran any more")
    wanted = (*SHARED, *(folder for case in plan.cases for folder in case.code_folders()))
    return {name: content for name, content in files_in(tree).items() if name.startswith(wanted)}


def files_in(tree: Tree) -> dict[str, bytes]:
    """Path -> content of every file of a tree."""
    files = {}
    with tarfile.open(fileobj=io.BytesIO(tree.archive)) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None and member.name != END_MARK:
                files[member.name] = content.read()
    return files


def environment_scripts(plan: Mapping[str, Any], training_dir: Path) -> list[RunFile]:
    """The shell files of a plan's cases, as far as they are there: what they set may be secret.

    A plan is a stranger's, and names none but those in the tree.
    """
    files = [case.get("files") for case in as_list(plan.get("cases")) if isinstance(case, dict)]
    named = [each.get("environment_script") for each in files if isinstance(each, dict)]
    paths = sorted(
        {PurePosixPath(name) for name in named if isinstance(name, str) and len(name) <= LONGEST_PATH}
    )
    inside = [path for path in paths if path.parts and ".." not in path.parts and not path.is_absolute()]
    return [looked_at(training_dir, str(path)) for path in inside if os.path.lexists(training_dir / path)]
