"""One rank's run, from its arguments to FINISHED: the story of a training script."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, NoReturn

from benchmarks.driver.arguments import LaunchArguments, parse_arguments
from benchmarks.driver.batches import Prefetcher, Step
from benchmarks.driver.case_answers import case_error, kind_of
from benchmarks.driver.clock import PhaseClock
from benchmarks.driver.configuration import Configuration, read_configuration
from benchmarks.driver.extern import case_class, refuse_incomplete
from benchmarks.driver.finished import finished_values, memory_values
from benchmarks.driver.first_batch import check_case
from benchmarks.driver.initial_metric import as_event, initial_metric, refuse_other_start
from benchmarks.driver.inspection import hooks_of_all_ranks, never_called
from benchmarks.driver.loop import TrainingLoop
from benchmarks.driver.measurement import MeasurementLoop, measured_values
from benchmarks.driver.operations import operations_of
from benchmarks.driver.parts import part_of
from benchmarks.driver.perf_log import PerfLog
from benchmarks.driver.ranks import ranks_start_ms, read_rank_environment, round_number
from benchmarks.driver.run_state import make_saver, restore, restore_random, task_of
from benchmarks.driver.schedules import schedule_of
from benchmarks.driver.start import start_engine
from benchmarks.driver.vendor_facts import import_plugin, read_vendor_facts
from utils.case_form import WORK
from utils.errors import FlagPerfError
from utils.events import EventName
from utils.parameters import MeasurementSettings
from utils.stacks import answer_with_stacks


def run(arguments: LaunchArguments, script_start: float) -> None:
    """Train or measure, as the case of `arguments` says.

    Args:
        arguments: the launch contract's.
        script_start: `time.monotonic()` at the script's first line, in seconds.
    """
    environment = read_rank_environment()
    perf_log = PerfLog(environment.rank)
    framework = load_framework(arguments.framework)
    case = case_class(arguments.case_dir)
    vendor = read_vendor_facts(arguments.vendor, arguments.framework)
    config = read_configuration(arguments, getattr(case, "metric", ""), vendor.device_type)
    config = config.of_round(round_number())
    refuse_incomplete(case, config.kind, arguments.case_dir)

    init_start = time.monotonic()
    # First: it makes the device known to the framework, which says the version of its runtime then; hooks may need it.
    plugin = import_plugin(vendor)
    versions = {**framework.versions(), **plugin, "collectives": vendor.backend}
    value = {"config": config.as_dict(), "changed": list(config.changed), "versions": versions}
    perf_log.write(EventName.INIT_START, {**value, "ranks_start_ms": ranks_start_ms()})
    engine: Any = start_engine(framework, case, config, arguments, environment, vendor)
    _collect_garbage_again()
    clock = PhaseClock(engine.device.synchronize)
    clock.begin("init", at=init_start)
    if config.kind != MeasurementSettings.kind:
        values = _train(engine, arguments, perf_log, clock)
    elif hasattr(case, WORK):
        values = _work(engine, config, perf_log, clock)
    else:
        values = _measure(engine, config, perf_log, clock)
    engine.group.barrier()
    values |= _stand_in(engine)
    perf_log.write(EventName.FINISHED, {"e2e_time": time.monotonic() - script_start, **values})
    engine.group.close()


def _collect_garbage_again() -> None:
    """Where the script has put it off: what is there by now stays, and is not looked through in training either."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _train(engine: Any, arguments: LaunchArguments, perf_log: PerfLog, clock: PhaseClock) -> dict[str, Any]:
    """Train until the target or a cap; what FINISHED says."""
    case, config, settings = engine.case, engine.config, engine.settings
    task = task_of(arguments, config, engine.world_size, arguments.data_dir)
    start = restore(engine, settings, task, os.environ, part_of(arguments, config.changed))
    saver = make_saver(engine, settings, task, os.environ, start.parts)
    steps: Prefetcher[Step] = Prefetcher(
        engine.training_steps(start.counters.steps), settings.prefetch_batches
    )
    first = next(steps)
    check_case(engine, first)
    perf_log.write(EventName.HOOKS, hooks_of_all_ranks(engine.group.gather(engine.inspector.as_dict())))
    if settings.init_evaluation:
        expected = initial_metric(case) if start.counters.steps == 0 else None
        metrics = engine.evaluate()  # a case may know its baseline only after it
        place = {"metric": case.metric, "baseline": engine.baseline(), "global_steps": start.counters.steps}
        value = {**metrics, **place, **as_event(expected)}
        perf_log.write(EventName.INIT_EVALUATION, value)
        refuse_other_start(expected, value[case.metric], case.metric)
    restore_random(engine, start)
    precision = {"precision": settings.precision, "precision_reason": config.precision_reason or None}
    value = {"init_time": clock.end("init"), **precision, **start.as_dict(), **_stand_in(engine)}
    perf_log.write(EventName.INIT_END, value)

    loop = TrainingLoop(
        settings, case.metric, engine, schedule_of(settings), perf_log, clock, start=start, saver=saver
    )
    outcome = loop.run(chain([first], steps))
    steps.close()
    values = finished_values(
        outcome, settings=settings, engine=engine, metric=case.metric, flops_formula=case.flops_formula
    )
    return {**values, "num_eval_samples": engine.loader.evaluation_samples, **precision, **start.as_dict()}


def _measure(engine: Any, config: Configuration, perf_log: PerfLog, clock: PhaseClock) -> dict[str, Any]:
    """Measure every operation of the case; what FINISHED says."""
    operations = operations_of(engine.case)
    perf_log.write(EventName.HOOKS, never_called(engine.hooks))
    perf_log.write(EventName.INIT_END, {"init_time": clock.end("init"), **_stand_in(engine)})
    with clock.phase("measure"):
        results = MeasurementLoop(config.measurement, engine, perf_log).run(operations)
    times = {"init_time": clock.seconds("init"), "measure_time": clock.seconds("measure")}
    return {**measured_values(results, config.measurement, engine), **times, **memory_values(engine)}


def _work(engine: Any, config: Configuration, perf_log: PerfLog, clock: PhaseClock) -> dict[str, Any]:
    """Let a case do all by itself; what FINISHED says."""
    perf_log.write(EventName.INIT_END, {"init_time": clock.end("init"), **_stand_in(engine)})
    with clock.phase("measure"):
        values = engine.case.work(engine, perf_log)
    if not isinstance(values, Mapping):
        raise case_error(
            engine.case, f"{WORK} gave {kind_of(values)}", "return names with values, of FINISHED"
        )
    times = {"init_time": clock.seconds("init"), "measure_time": clock.seconds("measure")}
    return {"kind": config.kind, "world_size": engine.world_size, **times, **memory_values(engine), **values}


def _stand_in(engine: Any) -> dict[str, Any]:
    """Nothing of a true device."""
    about = engine.device.stand_in()
    return {"stand_in": about} if about else {}


def load_framework(name: str) -> Any:
    """The module `benchmarks.driver.<name>.start`.

    Raises:
        FlagPerfError: the driver has no engine for this framework.
    """
    module = f"benchmarks.driver.{name}.start"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise FlagPerfError(
                f"{error}", where="this rank's Python", remedy=f"install {error.name} in the image"
            ) from error
        raise FlagPerfError(
            f"the driver has no engine for the framework {name!r}",
            where="--case_dir",
            remedy="name the case's folder after its framework, or bring its own run_pretraining.py",
        ) from error


def run_and_exit(argv: list[str], script_start: float) -> NoReturn:
    """Run and end the process with 0, or with 1 after the traceback of what went wrong.

    The process is ended by `os._exit`: threads of the collective library may abort a process that is
    torn down in the usual way after its work is done, and such an abort must not be taken for a
    failure, nor a failure for such an abort.
    """
    arguments = parse_arguments(argv)  # --help ends the process here
    answer_with_stacks()
    code = _exit_code_of(lambda: run(arguments, script_start))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _exit_code_of(action: Callable[[], None]) -> int:
    try:
        action()
    except BaseException:  # SystemExit among them: a case that exits, with whatever code, was not done
        traceback.print_exc()
        return 1
    return 0
