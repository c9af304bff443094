"""A run's rounds as ais-bench reports a training: `train_result_info` and the line `report >> throughput_list`.

The form is that of ais-bench 1.0's stubs (github.com/Ascend/tools, ais-bench_workload): texts, and a time by the clock
on the wall. What was not measured is an empty text; the stubs write 0, which could be taken for a measurement.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, mean

from run_benchmarks.comparison.derived import whole_figures
from run_benchmarks.exports.chosen import Round, file_name, in_ms, rounds_in
from run_benchmarks.exports.destination import new_folder
from run_benchmarks.plan.secrets import SecretsHere
from run_benchmarks.results.clocks import Placement, placements
from run_benchmarks.results.power import training_window
from run_benchmarks.results.tables import by_case
from run_benchmarks.results.telemetry_file import TelemetryReader
from utils.errors import FlagPerfError
from utils.events import Event, EventName
from utils.numbers import number_in
from utils.telemetry.lines import TELEMETRY_FILE
from utils.telemetry.records import Scope, Window

NOT_MEASURED = ""
# ais-bench's field -> the figure: its throughput is without evaluations, power and energy are a node's.
_FIGURES = {
    "accuracy": "acc",
    "throughput_ratio": "p_train",
    "average_power": "avg_power",
    "max_power": "max_power",
    "energy_consumption": "energy",
    "efficientcy": "samples_per_joule",
}


def export_ais_bench(run: Path, output: Path, secrets: SecretsHere) -> list[str]:
    """Write `<case>/round<N>.json` and `<case>/report.log`; what is to be known, line by line.

    Raises:
        FlagPerfError: no whole round of the run succeeded, or `output` is there already.
    """
    reasons = [(each, _why_not(each)) for each in rounds_in(run, secrets)]
    good = [each for each, reason in reasons if not reason]
    left_out = [f"{each.name} is left out: {reason}" for each, reason in reasons if reason]
    if not good:
        message = f"no round succeeded: there is nothing to report ({'; '.join(left_out)})"
        raise FlagPerfError(message, where=str(run))
    with new_folder(output) as folder:
        for name, of_case in by_case(good, lambda each: each.result.case).items():
            _write_case(folder / file_name(name), of_case)
    return left_out


def _why_not(each: Round) -> str:
    """Why a round is not reported; empty where it is."""
    if each.result.rules.stand_in:
        return each.result.rules.explanation()
    if each.result.verdict.is_success and each.result.continued:
        return "it went on from a checkpoint: its figures are of a part of the training"
    return "" if each.result.verdict.is_success else each.result.verdict.value


def train_result_info(each: Round) -> dict[str, str]:
    """The fifteen fields of a round, in the order of their names."""
    events = each.events()
    values = {field: _figure(each, name) for field, name in _FIGURES.items()}
    for field, time_ms in _times(each, events).items():
        shown = None if time_ms is None else each.local_time(time_ms)
        values[field] = f"{shown:%Y-%m-%d %H:%M:%S}" if shown else NOT_MEASURED
    values["resource_util_ratio"] = _utilisation(each, events)
    return dict(sorted(values.items()))


def _times(each: Round, events: Sequence[Event]) -> dict[str, int | None]:
    """Milliseconds since the epoch: of events, and when rank 0's script began, by the same clock."""
    at = {event.name: event.time_ms for event in reversed(events)}
    ended, seconds = at.get(EventName.FINISHED), number_in(each.result.facts, "e2e_time")
    return {
        # of FlagPerf's trainings no part is the loading of data alone: it goes on beside them
        "dataload_start_time": None,
        "dataload_end_time": None,
        "prepare_start_time": at.get(EventName.INIT_START),
        "prepare_end_time": at.get(EventName.INIT_END),
        "proc_start_time": at.get(EventName.TRAIN_START),
        "proc_end_time": at.get(EventName.TRAIN_END),
        "total_start_time": None if ended is None or seconds is None else ended - in_ms(seconds),
        "total_end_time": ended,
    }


def _write_case(folder: Path, rounds: Sequence[Round]) -> None:
    folder.mkdir()
    lines = [_report("throughput_list", "p_train", rounds), _report("accuracy_list", "acc", rounds)]
    for each in rounds:
        text = json.dumps(train_result_info(each), indent=3, separators=(",", " : "))
        (folder / f"round{each.result.round}.json").write_text(text + "\n", encoding="utf-8")
        lines.append(f"train_result_info: {text}")
    (folder / "report.log").write_text("\n".join([*filter(None, lines), ""]), encoding="utf-8")


def _report(what: str, figure: str, rounds: Sequence[Round]) -> str:
    """`report >> throughput_list:[...] average:...` over the rounds; none where a round lacks the figure."""
    figures = [each.result.figures.get(figure) for each in rounds]
    values = [each.value for each in figures if each is not None and each.value is not None]
    return f"report >> {what}:{values} average:{mean(values)}" if len(values) == len(rounds) else ""


def _figure(each: Round, name: str) -> str:
    figure = whole_figures(each.result).get(name)
    return NOT_MEASURED if figure is None or figure.value is None else str(figure.value)


def _utilisation(each: Round, events: Sequence[Event]) -> str:
    """Mean use of the accelerators while they trained, in percent as ais-bench's scripts have it."""
    window = training_window(events)
    if isinstance(window, str):
        return NOT_MEASURED
    samples = array("d")
    folders = list(each.node_folders())
    for folder, placement in zip(folders, placements(each.result.clocks, len(folders)), strict=True):
        samples += _samples(folder / TELEMETRY_FILE, window, placement)
    return str(100 * fmean(samples)) if samples else NOT_MEASURED


def _samples(path: Path, window: Window, placement: Placement) -> array[float]:
    """The use of the accelerators, by sources that work, while they trained."""
    reader = TelemetryReader(path, (Scope.ACCELERATOR,), placement)
    uses: dict[str, array[float]] = {}
    try:
        for tick in reader.ticks():
            if window.start_ms <= tick.time_ms <= window.end_ms:
                read = (use for use in tick.readings.get("utilisation", ()) if use is not None)
                uses.setdefault(tick.source, array("d")).extend(use for use in read if 0 <= use <= 1)
    except FlagPerfError:  # the round's power says why
        return array("d")
    working = reader.telemetry().with_scope(Scope.ACCELERATOR)
    return sum((uses[source] for source in working if source in uses), array("d"))
