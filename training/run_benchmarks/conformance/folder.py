"""A vendor's folder as a run sees it: `vendor.py` read, and every configuration planned as a case of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from run_benchmarks.conformance.records import CheckResult, failed
from run_benchmarks.plan.case_files import CaseResolver
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.records import CasePlan, CaseSettings, ClusterSettings, RunSettings, VendorSettings
from run_benchmarks.plan.source_code import text_of
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE, read_vendor
from run_benchmarks.stages.tree import DOCKER_IMAGE, LEFT_OUT_AT_TOP, too_large
from run_benchmarks.stages.tree_files import files_in, problems_in
from utils.config_files import parts_of_config
from utils.errors import FlagPerfError, Problem
from utils.loading import why_no_file

CONFIGS = "*-*/config/config_*.py"
COMMON_CONFIG = "config_common"  # what configurations of a case share
INSIDE = "/workspace/flagperf"
WRITE_VENDOR = "write it: CONTRIBUTING.md; `run.py vendor new` shows under another name what it holds"


def folder_trouble(folder: Path) -> Iterator[CheckResult]:
    """What forbids to read or copy it: links that lead elsewhere or in circles, pipes, what is far too large."""
    training = folder.parent
    problems = problems_in(training, {training / name for name in LEFT_OUT_AT_TOP})
    own = [problem for problem in problems if Path(problem.name).parts[0] == folder.name]
    for problem in own or too_large(folder):
        yield failed(problem.message, Path(problem.where, problem.name), problem.remedy)
    for path in (Path(parent, name) for parent, _, names in os.walk(folder) for name in names):
        is_installer = DOCKER_IMAGE in path.relative_to(folder).parts and path.is_file()
        if (reason := why_no_file(path)) and not (is_installer or path.is_symlink()):
            yield failed(reason, path, "take it away, or put the right file there")


def vendor_in(folder: Path) -> tuple[Vendor | None, list[Problem]]:
    """What `vendor.py` says, or None and what is wrong with it."""
    problems = Problems()
    path = folder / VENDOR_FILE
    if not path.is_file():
        return None, [Problem(str(path), VENDOR_FILE, "", "there is no such file", WRITE_VENDOR)]
    vendor = read_vendor(folder.name, folder.parent, str(path), VENDOR_FILE, problems)
    return vendor, problems.all


def require_vendor(folder: Path) -> Vendor:
    """What `vendor.py` says.

    Raises:
        FlagPerfError: it cannot be read; `vendor check` names all that is wrong with it.
    """
    vendor, problems = vendor_in(folder)
    if vendor is None:
        first = problems[0]
        raise FlagPerfError(f"{first.name}: {first.message}", where=first.where, remedy=first.remedy)
    return vendor


def chip_of(vendor: Vendor, device: str) -> str:
    """The chip that a line of `parse_device_list` is taken for, or none."""
    chips = vendor.chips.values()
    return next((chip.name for chip in chips if any(part in device for part in chip.device_names)), "")


def configs_of(folder: Path) -> list[Path]:
    """The vendor's configurations, of all its cases."""
    return [path for path in sorted(folder.glob(CONFIGS)) if path.stem != COMMON_CONFIG]


def cases_of(vendor: Vendor) -> tuple[list[CasePlan], list[Problem]]:
    """A case for each configuration, at the size that its name says; and what is wrong with the others."""
    problems = Problems()
    cases = []
    for path in configs_of(vendor.folder):
        settings = _settings(path, problems)
        if settings is not None:
            resolver = CaseResolver(
                settings, str(path), _run(vendor.folder.parent), vendor.folder.parent, problems
            )
            case = resolver.plan(ClusterSettings(hosts=()), vendor, VendorSettings())
            cases += [] if case is None else [case]
    return cases, problems.all


def _settings(path: Path, problems: Problems) -> CaseSettings | None:
    parts, (model, _, framework) = parts_of_config(path.stem), path.parents[1].name.rpartition("-")
    if parts is None:
        remedy = "rename it config_<chip>x<hosts>x<devices of a host>.py"
        problems.add(path, path.stem, None, "is no name of a configuration", remedy)
        return None
    chip, nnodes, nproc = parts
    key = f"{model}:{framework}:{chip}:{nnodes}:{nproc}:1"
    return CaseSettings(
        key,
        path.parents[2].name,
        model,
        framework,
        path.stem,
        repeat=1,
        data_dir_host="/",
        data_dir_container="/",
        nnodes=nnodes,
        nproc=nproc,
    )


def _run(training: Path) -> RunSettings:
    """Settings of a run that is never made."""
    return RunSettings(
        flagperf_path_host=str(training),
        flagperf_path_container=f"{INSIDE}/training",
        log_path=training / "result",
        log_path_container=f"{INSIDE}/result",
    )


def marked(folder: Path, mark: str) -> Iterator[tuple[Path, int, str]]:
    """The lines of the folder's text files that have `mark` in them: file, line, what stands behind the mark."""
    for path in files_in(folder):
        for number, line in enumerate(text_of(path).splitlines(), 1):
            if mark in line:
                yield path, number, line.partition(mark)[2].partition(" |")[0].strip(" :\"'#>*-,")
