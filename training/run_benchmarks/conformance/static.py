"""The part `static`: what a folder's files say, without a chip, a framework or a container."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from run_benchmarks.conformance.backends import backends_trouble
from run_benchmarks.conformance.config_code import config_trouble
from run_benchmarks.conformance.engine_options import options_trouble
from run_benchmarks.conformance.figures import figures_trouble
from run_benchmarks.conformance.folder import CONFIGS, cases_of, configs_of, marked, vendor_in
from run_benchmarks.conformance.image_files import dockerfile_trouble, shell_trouble, shells
from run_benchmarks.conformance.readme import readme_trouble
from run_benchmarks.conformance.records import CheckResult, Options, failed, named, not_proven
from run_benchmarks.plan.config_file import read_config_file
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE
from run_benchmarks.plan_notes import oddities
from utils.errors import Problem
from utils.numbers import counted
from utils.parameters import TARGET

MARK = "FILL IN"  # stands where `vendor new` leaves something open


def checks(vendor: Path, options: Options) -> Iterator[CheckResult]:
    """All that the files alone show; what is wrong with one hides nothing that is wrong with another."""
    record, problems = vendor_in(vendor)
    yield from named(VENDOR_FILE, _wrong(problems))
    if record is not None:
        yield from _of_vendor(record)
    images = sorted(vendor.glob("docker_image/*/Dockerfile"))
    yield from named("Dockerfiles", _dockerfiles(vendor, images), counted(len(images), "Dockerfile"))
    scripts = shells(vendor)
    trouble = (check for script in scripts for check in shell_trouble(script))
    yield from named("shell scripts", trouble, counted(len(scripts), "script"))
    open_places = (
        not_proven(f"to be filled in: {what}", f"{path}:{line}") for path, line, what in marked(vendor, MARK)
    )
    yield from named("places to be filled in", open_places, "none is left")


def _of_vendor(vendor: Vendor) -> Iterator[CheckResult]:
    cases, problems = cases_of(vendor)
    sizes = counted(len(cases), "configuration")
    yield from named("configurations", _configurations(vendor, problems), f"{sizes} can be planned")
    yield from named("mutable parameters", _beyond_mutable(vendor, cases), _why_mutable(vendor))
    yield from named("names and hooks", _odd(vendor, cases))
    frameworks = [case.settings.framework_name for case in cases]
    yield from named("device and collectives", backends_trouble(vendor, frameworks))
    yield from named("names of chips", _chip_names(vendor), ", ".join(vendor.chips))
    yield from named("figures of chips and their sources", figures_trouble(vendor))
    yield from named("container options", options_trouble(vendor), "the engine's own parser takes them")
    yield from named("READMEs", readme_trouble(vendor, cases), "each configuration has its row")


def _wrong(problems: Iterable[Problem]) -> Iterator[CheckResult]:
    for problem in problems:
        subject = f"{problem.name} = {problem.value}" if problem.value else problem.name
        yield failed(f"{subject}: {problem.message}", problem.where, problem.remedy)


def _configurations(vendor: Vendor, problems: Iterable[Problem]) -> Iterator[CheckResult]:
    if not configs_of(vendor.folder):
        remedy = "write bert-pytorch/config/config_<chip>x1x8.py, for the documented sizes"
        yield failed("there is no configuration of a case", vendor.folder, remedy)
    for path in sorted(vendor.folder.glob(CONFIGS)):
        yield from config_trouble(path)
    yield from _wrong(problems)


def _why_mutable(vendor: Vendor) -> str:
    if vendor.device_type == "cpu":
        return "not asked of demos on the host's own processors, whose results are open"
    return "no configuration sets what its case does not let a vendor change"


def _beyond_mutable(vendor: Vendor, cases: Iterable[CasePlan]) -> Iterator[CheckResult]:
    for case in cases if vendor.device_type != "cpu" else ():
        path = vendor.folder.parent / case.files.config_dir / case.files.config_file
        remedy = f"remove it: {case.files.case_dir}/config/mutable_params.py has what may be set in a closed result"
        file = read_config_file(path, Problems(), "", for_images=True) if case.differs else None
        for name, value in (case.differs or {}).items():
            written = next((each for each in (file.values if file else ()) if each.startswith(TARGET)), name)
            name = written if name == "target" else name
            where = file.where(name) if file else path
            yield failed(f"{name} = {value!r}: the case does not let a vendor change it", where, remedy)


def _odd(vendor: Vendor, cases: Iterable[CasePlan]) -> Iterator[CheckResult]:
    one_of_each = {case.files.config_dir: case for case in cases}.values()
    notes = dict.fromkeys(note for case in one_of_each for note in oddities(vendor.folder.parent, case))
    for note in notes:
        where, _, detail = note.partition(": ")
        yield failed(detail, where, "rename it, or remove it; what a case can have: CONTRIBUTING.md")


def _chip_names(vendor: Vendor) -> Iterator[CheckResult]:
    """Else a device would be taken for a chip with another peak."""
    where = vendor.folder / VENDOR_FILE
    if not vendor.chips:
        yield failed(
            "CHIPS has no chip: devices of any kind would pass", where, "add the chips, with their names"
        )
    names = [(chip.name, name) for chip in vendor.chips.values() for name in chip.device_names]
    for chip, name in names:
        for other, longer in names:
            if other != chip and name in longer:
                detail = f"{name!r} of {chip} is a part of {longer!r} of {other}, which would be taken for it"
                yield failed(detail, where, "write more of the line, so that it is this chip's alone")


def _dockerfiles(vendor: Path, images: Iterable[Path]) -> Iterator[CheckResult]:
    if not images:
        yield failed(
            "there is no Dockerfile", vendor / "docker_image", "write docker_image/pytorch/Dockerfile"
        )
    yield from (check for path in images for check in dockerfile_trouble(path))
