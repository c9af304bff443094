"""What the parts of a run were trained with, as far as its stamp depends on it: each checkpoint hands it on.

A run that goes on has its weights and its optimizer from the parts before it, which no check of this part sees.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.driver.arguments import LaunchArguments
from utils.code_files import code_files, digest_of, digest_of_file
from utils.manifest import MANIFEST_NAME

# The vendor's shell code that is sourced before the ranks start, beside its configuration.
ENVIRONMENT_FILE = "environment_variables.sh"
BENCHMARKS = Path(__file__).resolve().parents[1]
# Code of all cases, from `benchmarks/`; in `utils/` is what resolves their parameters.
_SHARED = ("common", "driver", "../utils")
MOST_FILES = 10_000  # of data without a manifest, which are looked at before a training begins
# What no digest is: checkpoints of earlier versions, which are other code, do not tell theirs.
_UNTOLD = ("",)


@dataclass(frozen=True)
class Parts:
    """Of all parts of a run, or of one.

    hooks, code: SHA-256 of the code of the vendor's hooks, and of that of the case and the driver, part by part.
    data: of the data's manifest; where they have none, of the names and sizes of their files.
    changed: the parameters that the vendor changed beyond what the case allows.
    """

    hooks: frozenset[str] = frozenset()
    code: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()

    def as_state(self) -> dict[str, list[str]]:
        """As a checkpoint has it."""
        return {name: sorted(values) for name, values in vars(self).items()}

    def after(self, state: Mapping[str, Any]) -> Parts:
        """With the parts that a checkpoint tells of."""
        return Parts(
            self.hooks.union(map(str, state.get("hooks", ()))),
            self.code.union(map(str, state.get("code", _UNTOLD))),
            self.changed.union(map(str, state.get("changed", ()))),
            self.data.union(map(str, state.get("data", _UNTOLD))),
        )


def part_of(arguments: LaunchArguments, changed: Iterable[str]) -> Parts:
    """This part alone."""
    hooks = arguments.extern_module_dir if arguments.enable_extern_config else None
    digest = digest_of(code_files(hooks)) if hooks else ""
    code, data = _code_of_case(arguments), _data_in(arguments.data_dir)
    return Parts(frozenset([digest]), frozenset([code]), frozenset(changed), frozenset([data]))


def _data_in(folder: Path) -> str:
    """What tells data apart: SHA-256 of their manifest or, where they have none, of the names and sizes of their files.

    A run goes on with no other manifest (`refuse_other_task`); without one nobody would notice.
    """
    manifest = folder / MANIFEST_NAME
    if manifest.is_file():
        return digest_of_file(manifest)
    sizes: dict[str, str] = {}
    seen = 0  # folders too: a link may lead back
    for at, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(filter(_is_of_data, folders))
        for name in sorted(filter(_is_of_data, files))[: MOST_FILES - seen]:
            path = Path(at, name)
            sizes[ascii(str(path.relative_to(folder)))] = _size_of(path)
        seen += len(folders) + len(files)
        if seen >= MOST_FILES:
            break
    return digest_of(sizes)


def _is_of_data(name: str) -> bool:
    """Whether it is no hidden file, which file systems and tools leave."""
    return not name.startswith(".")


def _size_of(path: Path) -> str:
    try:
        return str(path.stat().st_size)
    except OSError:  # gone meanwhile, or a link that leads nowhere
        return ""


def _code_of_case(arguments: LaunchArguments) -> str:
    """SHA-256 of the code of the case, of what all cases share, of the driver, and of the vendor's environment."""
    case = arguments.case_dir.parent if arguments.case_dir.is_relative_to(BENCHMARKS) else arguments.case_dir
    folders = {"case": case, **{name: BENCHMARKS / name for name in _SHARED}}
    files = {
        f"{name}/{path}": digest
        for name, folder in folders.items()
        for path, digest in code_files(folder).items()
    }
    config = arguments.extern_config_dir if arguments.enable_extern_config else None
    if config and (config / ENVIRONMENT_FILE).is_file():
        files[ENVIRONMENT_FILE] = digest_of_file(config / ENVIRONMENT_FILE)
    return digest_of(files)
