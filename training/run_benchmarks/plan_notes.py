"""What deserves a word of a plan that is right: it forbids nothing, and would else be seen late or never."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from run_benchmarks.frameworks import open_framework
from run_benchmarks.imports.record import IMAGES, SUFFIX, read_imports
from run_benchmarks.plan.case_code import unread_names
from run_benchmarks.plan.case_files import DRIVER_SCRIPT
from run_benchmarks.plan.hook_code import functions_in, uncalled_functions
from run_benchmarks.plan.parameters import COMMON, code_folders
from run_benchmarks.plan.problems import shorten
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.plan.redact import redact_text
from run_benchmarks.plan.time_limits import deadline_notes
from run_benchmarks.plan.vendors import VENDOR_FILE
from run_benchmarks.results.planned import planned
from run_benchmarks.results.quality import falls
from run_benchmarks.results.rules import CLOSED, OPEN, WRITABLE, Rules
from utils.errors import FlagPerfError, nearest
from utils.hook_form import HOOKS
from utils.monitors.accelerators import monitor_file
from utils.parameters import TARGET

UNTOLD = (
    "REQUIRE_UNDISTURBED: plain processes have no control group of their own, by which others' load is told from "
    "theirs: a round in which it cannot be told is INVALID"
)
_NEAR = 0.7
_FAINTLY_NEAR = 0.4  # what is nearer than 0.6 to a hook is refused
_LONGEST_LINE = 400


def notes_of(plan: Plan) -> list[str]:
    """One a line, each once."""
    root = plan.training_dir
    notes = [note for case in plan.cases for note in _of_case(root, case)]
    if not plan.run.uses_images:
        notes += [_not_built(root, case) for case in plan.cases if case.files.extension_dir]
        notes += [UNTOLD] if plan.run.require_undisturbed else []
    notes += _of_imports(plan)
    notes += deadline_notes(plan.cases, plan.cluster.slurm)
    return list(dict.fromkeys(notes))


def stamp_of(case: CasePlan) -> str:
    """What the rules will say of the case's results (closed, open), as far as it follows from the files."""
    vendors_case = planned(case).vendors_folder
    if case.differs or vendors_case:
        line = Rules(OPEN, case.differs or {}, vendors_case=vendors_case).explanation()
        return shorten(redact_text(line), _LONGEST_LINE)
    if case.extern and case.files.script == DRIVER_SCRIPT:
        return "open where the hooks change more than kernels, else closed: it is seen when they run"
    if case.writable or case.extern or case.differs is None:
        what = WRITABLE if case.writable else "it has no mutable names"
        what = "what its script lets extern/ replace is not checked" if case.extern else what
        return f"neither closed nor open: {what}"
    return Rules(CLOSED).explanation()


def hooks_of(root: Path, case: CasePlan) -> str:
    """The hooks that the vendor's `extern/` defines, each with its file: `backward (hooks.py)`; or none."""
    functions = functions_in(root / case.files.extern_dir, case.extern)
    return ", ".join(f"{each.name} ({file})" for file, each in functions if each.name in HOOKS) or "none"


def _of_case(root: Path, case: CasePlan) -> Iterator[str]:
    yield from oddities(root, case)
    if case.vendor.chips and case.chip is None and case.files.script != DRIVER_SCRIPT:
        yield from _of_peak(case)
    if case.files.script == DRIVER_SCRIPT:
        yield from _of_vendor(case)
        yield from _of_peak(case)


def oddities(root: Path, case: CasePlan) -> Iterator[str]:
    """What stands in the case's and the vendor's files for nothing, or for something else than was meant.

    Of a script of a case's own nothing is said of what the driver alone does with the files.
    """
    yield from _misnamed(root, case)
    if case.files.script == DRIVER_SCRIPT:
        yield from _of_metric(root, case)
        yield from _unread(root, case)
        yield from _of_extern(root, case)


def _of_imports(plan: Plan) -> Iterator[str]:
    """Keys of public FlagPerf's mean what is here, where an import had to give its own another name."""
    try:
        folders = read_imports(plan.training_dir).above()
    except FlagPerfError as error:
        yield f"{error.where}: {error.message}"
        return
    for case in plan.cases if folders else ():
        yield from _imported_twin(case, folders, plan.run.uses_images)


def _imported_twin(case: CasePlan, folders: Collection[str], uses_images: bool) -> Iterator[str]:
    """The key of what was imported, where the case's own leads elsewhere."""
    key, files, vendor = case.settings, case.files, case.vendor.folder.name
    has_code = f"{vendor}/{key.model}{SUFFIX}-{key.framework_name}" in folders
    image = f"{vendor}/{IMAGES}/{key.framework}{SUFFIX}"
    has_image = uses_images and image in folders and (has_code or files.case_dir in folders)
    pairs = ((has_code, files.case_dir), (has_image, files.dockerfile_dir))
    if own := " and ".join(what for is_twin, what in pairs if is_twin):
        twin = f"{key.model}{SUFFIX * has_code}:{key.framework}{SUFFIX * has_image}"
        yield f"{key.name}: takes {own}, and not what was imported: the key of that begins with {twin}:"


def _not_built(root: Path, case: CasePlan) -> str:
    setup = root / str(case.files.extension_dir) / "setup.py"
    return f"{setup}: is built into images alone: with this RUNTIME install it into PROCESS_PYTHON yourself"


def _of_vendor(case: CasePlan) -> Iterator[str]:
    """What `vendor.py` says that the framework does not know by itself."""
    vendor, framework = case.vendor, open_framework(case.settings.framework)
    path, backend = vendor.folder / VENDOR_FILE, vendor.collective_backend.get(framework.name, "")
    for setting, value, own in (
        ("DEVICE_TYPE", vendor.device_type, framework.device_types),
        (f"COLLECTIVE_BACKEND[{framework.name!r}]", backend, framework.backends),
    ):
        if value not in own and framework.name not in vendor.plugin:
            listed = f"{framework.name}'s own are {', '.join(own)}; {nearest(value, own)}".rstrip("; ")
            yield f"{path}: {setting} = {value!r} must come from a plug-in: {listed}"


def _of_peak(case: CasePlan) -> Iterator[str]:
    """Without the peak of what it computes in there is no MFU, which is seen when it is too late."""
    path, chip, precision = case.vendor.folder / VENDOR_FILE, case.chip, case.parameters.get("precision")
    if case.vendor.device_type == "cpu":  # nobody looks for it there
        return
    if not case.vendor.chips:
        yield f"{path}: CHIPS has no chip: devices of any kind pass, and MFU will be null"
    elif chip is None:
        yield f"{path}: CHIPS has no {case.settings.chip}: devices of any kind pass, and MFU will be null"
    elif precision and not chip.peak_flops.get(str(precision)):
        yield f"{path}: CHIPS has no peak for {precision} of {chip.name}: MFU will be null"


def _of_metric(root: Path, case: CasePlan) -> Iterator[str]:
    """A metric that gets smaller as training goes on would meet its target at once, or never."""
    base = root / case.files.case_dir / "config/_base.py"
    for metric in (name[len(TARGET) :] for name in case.parameters if name.startswith(TARGET)):
        if falls(metric):
            yield (
                f"{base}: {TARGET}{metric}: to the driver the larger metric is the better one: where {metric} is to "
                f"fall, let case.py negate it, and name it neg_{metric}"
            )


def _unread(root: Path, case: CasePlan) -> Iterator[str]:
    """What a case's author wrote and nothing reads."""
    for name in unread_names(case.parameters, code_folders(root, case.files), root / COMMON):
        path = root / case.files.case_dir / "config/_base.py"
        yield f"{path}: {name} is no setting of the driver, and stands nowhere in the case's code: it has no effect"


def _of_extern(root: Path, case: CasePlan) -> Iterator[str]:
    """A function that is meant for a hook, and whose name is none, is passed over."""
    folder = root / case.files.extern_dir
    for file, function in uncalled_functions(folder, list(case.extern)):
        hint = nearest(function.name, HOOKS, _FAINTLY_NEAR) or f"the hooks are {', '.join(HOOKS)}"
        yield f"{folder / file}:{function.lineno}: {function.name} is no hook, and nothing in extern/ calls it: {hint}"


def _misnamed(root: Path, case: CasePlan) -> Iterator[str]:
    """Files and folders that nothing reads, and whose names are nearly those of what is read where it is there."""
    files, vendor = case.files, case.vendor.folder
    install = () if files.install_script else (f"{case.settings.framework_name}_install.sh",)
    read = {
        vendor: (monitor_file(vendor).name,),
        (root / files.config_dir).parent: ("extern",),
        root / files.config_dir: ("environment_variables.sh", "requirements.txt"),
        root / files.case_dir: ("requirements.txt",),
        root / files.dockerfile_dir: install,
    }
    for folder, names in read.items():
        there = sorted(path.name for path in folder.glob("*"))
        absent = [name for name in names if name not in there]
        for name in (name for name in there if name not in names):
            ending = (f"did you mean {each}?" for each in absent if each.endswith(f"_{name}"))
            if hint := next(ending, "") or nearest(name, absent, _NEAR):
                yield f"{folder / name}: nothing reads it: {hint}"
    if (vendor / "__init__.py").is_file():
        yield f"{vendor / '__init__.py'}: hides pip's packages of the name {vendor.name}: remove it"
