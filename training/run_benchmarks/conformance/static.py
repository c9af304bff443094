"""The part `static`: what a folder's files say, without a chip, a framework or a container."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from run_benchmarks.conformance.engine_options import options_trouble
from run_benchmarks.conformance.folder import cases_of, configs_of, marked, vendor_in
from run_benchmarks.conformance.image_files import dockerfile_trouble, shell_trouble, shells
from run_benchmarks.conformance.readme import readme_trouble
from run_benchmarks.conformance.records import Check, Options, failed, named, not_proven
from run_benchmarks.frameworks import open_framework
from run_benchmarks.frameworks.pytorch import PLUGINS
from run_benchmarks.plan.config_file import read_config_file
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE
from run_benchmarks.plan_notes import oddities
from utils.errors import Problem, nearest
from utils.numbers import counted

PART = "static"
MARK = "FILL IN"  # stands where `vendor new` leaves something open
FIGURES = ("peak_flops", "memory_bandwidth", "link_bandwidth", "memory_gib", "power_w")


def checks(vendor: Path, options: Options) -> Iterator[Check]:
    """All that the files alone show; what is wrong with one hides nothing that is wrong with another."""
    record, problems = vendor_in(vendor)
    yield from named(PART, VENDOR_FILE, _wrong(problems))
    if record is not None:
        yield from _of_vendor(record)
    images = sorted(vendor.glob("docker_image/*/Dockerfile"))
    yield from named(PART, "Dockerfiles", _dockerfiles(vendor, images), counted(len(images), "Dockerfile"))
    scripts = shells(vendor)
    trouble = (check for script in scripts for check in shell_trouble(script))
    yield from named(PART, "shell scripts", trouble, counted(len(scripts), "script"))
    open_places = (
        not_proven(f"to be filled in: {what}", f"{path}:{line}") for path, line, what in marked(vendor, MARK)
    )
    yield from named(PART, "places to be filled in", open_places, "none is left")


def _of_vendor(vendor: Vendor) -> Iterator[Check]:
    cases, problems = cases_of(vendor)
    sizes = counted(len(cases), "configuration")
    yield from named(PART, "configurations", _configurations(vendor, problems), f"{sizes} can be planned")
    yield from named(PART, "mutable parameters", _beyond_mutable(vendor, cases), _why_mutable(vendor))
    yield from named(PART, "names and hooks", _odd(vendor, cases))
    yield from named(PART, "device and collectives", _backends(vendor, cases))
    yield from named(PART, "names of chips", _chip_names(vendor), ", ".join(vendor.chips))
    yield from named(PART, "figures of chips and their sources", _sources(vendor))
    yield from named(PART, "container options", options_trouble(vendor), "the engine's own parser takes them")
    yield from named(PART, "READMEs", readme_trouble(vendor, cases), "each configuration has its row")


def _wrong(problems: Iterable[Problem]) -> Iterator[Check]:
    for problem in problems:
        subject = f"{problem.name} = {problem.value}" if problem.value else problem.name
        yield failed(f"{subject}: {problem.message}", problem.where, problem.remedy)


def _configurations(vendor: Vendor, problems: Iterable[Problem]) -> Iterator[Check]:
    if not configs_of(vendor.folder):
        remedy = "write bert-pytorch/config/config_<chip>x1x8.py, for the documented sizes"
        yield failed("there is no configuration of a case", vendor.folder, remedy)
    yield from _wrong(problems)


def _why_mutable(vendor: Vendor) -> str:
    if vendor.device_type == "cpu":
        return "not asked of demos on the host's own processors, whose results are open"
    return "no configuration sets what its case does not let a vendor change"


def _beyond_mutable(vendor: Vendor, cases: Iterable[CasePlan]) -> Iterator[Check]:
    for case in cases if vendor.device_type != "cpu" else ():
        path = vendor.folder.parent / case.files.config_dir / case.files.config_file
        remedy = f"remove it: {case.files.case_dir}/config/mutable_params.py has what may be set in a closed result"
        for name, value in (case.differs or {}).items():
            yield failed(f"{name} = {value!r}: the case does not let a vendor change it", path, remedy)


def _odd(vendor: Vendor, cases: Iterable[CasePlan]) -> Iterator[Check]:
    one_of_each = {case.files.config_dir: case for case in cases}.values()
    notes = dict.fromkeys(note for case in one_of_each for note in oddities(vendor.folder.parent, case))
    yield from (failed(note) for note in notes)


def _backends(vendor: Vendor, cases: Iterable[CasePlan]) -> Iterator[Check]:
    """A name that nothing brings ends every rank at its start."""
    where = vendor.folder / VENDOR_FILE
    for name in sorted({case.settings.framework_name for case in cases}):
        framework, plugin = open_framework(name), vendor.plugin.get(name, "")
        brought = PLUGINS.get(plugin, ((), ()))
        for setting, value, own, of_plugin in (
            ("DEVICE_TYPE", vendor.device_type, framework.device_types, brought[0]),
            ("COLLECTIVE_BACKEND", vendor.collective_backend.get(name, ""), framework.backends, brought[1]),
        ):
            if value in own or value in of_plugin:
                continue
            detail = f"{setting} = {value!r} is none of {name}'s own ({', '.join(own)})"
            if plugin and not of_plugin:
                yield not_proven(
                    f"{detail}; whether {plugin} brings it is seen where that is installed", where
                )
                continue
            brings = (
                f", nor what {plugin} brings ({', '.join(of_plugin)})"
                if plugin
                else ", and PLUGIN names none"
            )
            remedy = (
                nearest(value, (*own, *of_plugin))
                or "correct it, or name the plug-in that brings it in PLUGIN"
            )
            yield failed(detail + brings, where, remedy)


def _chip_names(vendor: Vendor) -> Iterator[Check]:
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


def _sources(vendor: Vendor) -> Iterator[Check]:
    """Each figure can be looked up."""
    file = read_config_file(vendor.folder / VENDOR_FILE, Problems(), "")
    for chip in vendor.chips.values():
        for name in FIGURES:
            if getattr(chip, name) not in (None, {}) and not (chip.source.get(name) or chip.source.get("")):
                where = file.where("CHIPS", chip.name, name) if file else vendor.folder / VENDOR_FILE
                remedy = (
                    f'write into "source" of {chip.name} where {name} comes from; None where nobody knows it'
                )
                yield failed(f"{name} of {chip.name} has no source", where, remedy)


def _dockerfiles(vendor: Path, images: Iterable[Path]) -> Iterator[Check]:
    if not images:
        yield failed(
            "there is no Dockerfile", vendor / "docker_image", "write docker_image/pytorch/Dockerfile"
        )
    yield from (check for path in images for check in dockerfile_trouble(path))
