"""Whether cases can save checkpoints, and go on from those of an earlier run, as the files and the user want."""

from __future__ import annotations

from collections.abc import Sequence

from run_benchmarks.names import RUN_NAME
from run_benchmarks.plan.case_files import DRIVER_SCRIPT
from run_benchmarks.plan.config_file import ConfigFile
from run_benchmarks.plan.earlier_run import EarlierRun
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.records import CasePlan, RunSettings
from utils.parameters import KIND, MeasurementSettings

OPTION = "--continue-from"
_EXAMPLE = 'CHECKPOINT_PATH = "/data/checkpoints"'


def saves_checkpoints(case: CasePlan) -> bool:
    """Whether the shared driver saves any in this case, or a search its state; another script sees to it itself."""
    if case.roles:
        return True
    return case.files.script == DRIVER_SCRIPT and case.parameters.get("save_steps") is not None


def can_save(case: CasePlan) -> bool:
    """Whether the case may have checkpoints at all: a measurement that is no search has none, and is begun anew."""
    return bool(case.roles) or case.parameters.get(KIND) != MeasurementSettings.kind


def check_continuation(
    cases: Sequence[CasePlan], run: RunSettings, earlier: EarlierRun, conf: ConfigFile, problems: Problems
) -> None:
    """Note what stands in the way of saving checkpoints and of going on from them."""
    for case in cases:
        if saves_checkpoints(case) and not (case.roles or run.checkpoint_path):
            name = f"{case.settings.name}: save_steps"
            message = "is set, but nothing says where checkpoints go: CHECKPOINT_PATH is not"
            config = f"{case.files.config_dir}/{case.files.config_file}"
            remedy = f"add a line such as {_EXAMPLE}, or set save_steps = None in {config}"
            problems.add(conf.path, name, case.parameters["save_steps"], message, remedy)
    given = earlier.given
    if not given:
        return
    if not RUN_NAME.fullmatch(earlier.uid):
        message = f"{earlier.uid!r} is not the ID of a run"
        remedy = "give the result folder of that run, its name or its ID, such as run20261120094218-d7e6a7"
        problems.add("command line", OPTION, given, message, remedy)
        return
    if earlier.doubt:
        message = f"{earlier.doubt.where}: {earlier.doubt.message}"
        problems.add("command line", OPTION, given, message, earlier.doubt.remedy)
        return
    if not run.checkpoint_path and any(map(can_save, cases)):
        message = f"the checkpoints lie in CHECKPOINT_PATH, which {conf.path} does not set"
        problems.add("command line", OPTION, given, message, f"add {_EXAMPLE} as in that run")
    if cases and not any(map(can_save, cases)) and not any(earlier.done.values()):
        message = "no case of this run saves checkpoints, and no result here names a round that is done"
        remedy = f"give the result folder of that run, start without {OPTION}, or choose other cases"
        problems.add("command line", OPTION, given, message, remedy)
        return
    if run.require_undisturbed and any(map(saves_checkpoints, cases)):
        message = (
            f"REQUIRE_UNDISTURBED, which {conf.path} sets, cannot be held for a continued round: "
            "this run does not see what disturbed its earlier part"
        )
        remedy = f"start anew, without {OPTION}, or let rounds count without REQUIRE_UNDISTURBED"
        problems.add("command line", OPTION, given, message, remedy)
    for case in cases:
        if case.files.script != DRIVER_SCRIPT:
            message = f"{case.settings.name} brings its own training script, which the driver cannot continue"
            problems.add("command line", OPTION, given, message, "choose other cases with --cases")
    if cases and all(len(earlier.done.get(case.settings.name, ())) == case.settings.repeat for case in cases):
        message = (
            "every round of these cases had succeeded, with the parameters and the data that they have now"
        )
        problems.add("command line", OPTION, given, message, f"start anew, without {OPTION}")
