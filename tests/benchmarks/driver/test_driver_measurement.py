"""The measurement loop: when it is warm, what it measures, and what it says of chips that differ."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.measurement import Measured, MeasurementLoop, Rates, measured_values
from benchmarks.driver.operations import Operation, UnsupportedError
from benchmarks.driver.perf_log import PerfLog
from run_benchmarks.results.case_figures import case_figures
from tests.benchmarks.driver.ranks import launch_ranks, run_here, values_of
from tests.fakes.training_engines import ScriptedMeasurement
from utils.errors import FlagPerfError
from utils.events import parse_line
from utils.parameters import MeasurementSettings

SETTINGS = MeasurementSettings(window_seconds=1.0, max_warmup_windows=10)


def operation(engine: ScriptedMeasurement, work: float = 3.0) -> Operation:
    return Operation("adds", "TFLOP", work, "additions", lambda: engine.call, peak="fp32")


def measured(engine: ScriptedMeasurement, settings: MeasurementSettings = SETTINGS) -> Measured:
    (result,) = MeasurementLoop(settings, engine, PerfLog(0, io.StringIO())).run([operation(engine)])
    return result


def test_windows_are_measured_once_three_in_a_row_agree() -> None:
    """Four calls to see how long one takes (0.25 s: four a window), then warm-up; 0.245 and 0.25 are within 2 %."""
    engine = ScriptedMeasurement([9.0, 0.25, 5.0, 0.3, 0.3, 0.25, 0.25, 0.3, 0.245, 0.25, 0.25, 0.5])
    rates = measured(engine).ranks[0]
    assert (rates.warmup_windows, rates.settled, rates.calls) == (7, True, 4)
    assert engine.windows == [*[1] * 4, *[4] * 27]
    assert rates.rates == (6.0,) * 20  # 3 TFLOP a call in 0.5 s: the warm-up is not in it
    assert rates.seconds == pytest.approx(2.0)


def test_a_quick_operation_is_called_often_enough_to_fill_a_window() -> None:
    engine = ScriptedMeasurement([1.0, 0.001])
    rates = measured(engine).ranks[0]
    assert engine.windows[:16] == [1] * 4 + [4] * 3 + [16] * 3 + [64] * 3 + [256] * 3
    assert rates.calls == 1000


def test_a_rate_that_is_never_steady_is_measured_and_said_to_be_so() -> None:
    engine = ScriptedMeasurement([0.5 + 0.1 * (n % 2) for n in range(40)])
    result = measured(engine)
    assert (result.ranks[0].warmup_windows, result.ranks[0].settled) == (10, False)
    (note,) = result.notes(SETTINGS)
    assert "adds: the rate was not steady within 2% after 10 windows" in note
    assert "not steady after the warm-up" in result.figures()["adds"]["window"]


def test_the_slowest_rank_is_the_figure_and_is_named() -> None:
    slow = {"rates": (1.0,) * 10 + (2.0,) * 10, "settled": True}
    result = measured(ScriptedMeasurement([0.5], slow))
    assert (result.slowest, result.rate) == (1, 1.5)
    figures = result.figures()
    assert figures["adds"]["value"] == 1.5
    assert "rank 1, the slowest of 2 (the fastest: 6)" in figures["adds"]["window"]
    assert figures["adds_spread"]["value"] == pytest.approx(1.0 / 1.5)  # from 1 to 2 around 1.5
    assert figures["adds"]["caveat"] == "the windows did not agree: a spread of 67%"
    assert "caveat" not in measured(ScriptedMeasurement([0.5])).figures()["adds"]
    assert [rank["rates"][0] for rank in result.details()["ranks"]] == [6.0, 1.0]


def test_quartiles_are_of_the_windows() -> None:
    rates = Rates(tuple(map(float, range(1, 22))), 1, 1.0, 3, True)
    assert (rates.median, rates.spread) == (11.0, pytest.approx((16 - 6) / 11))


def test_what_cannot_be_done_is_left_out_with_its_reason_and_the_rest_measured() -> None:
    def missing() -> Callable[[], object]:
        raise UnsupportedError("no such units")

    engine, log = ScriptedMeasurement([0.5]), io.StringIO()
    operations = [Operation("none", "FLOP", 1.0, "-", missing), operation(engine)]
    loop = MeasurementLoop(SETTINGS, engine, PerfLog(0, log))
    values = measured_values(loop.run(operations), SETTINGS, engine)
    assert (values["kind"], list(values["figures"])) == ("measure", ["adds", "adds_spread"])
    assert values["notes"] == ["none is left out: no such units"]
    events = [event for line in log.getvalue().splitlines() if (event := parse_line(line))]
    step = ["STEP_BEGIN", "STEP_END"]
    assert [event.name for event in events] == ["TRAIN_START", *step, *step, "TRAIN_END"]
    assert [event.value.get("unsupported") for event in events[2::2]] == ["no such units", None]
    assert (events[4].value["metric"], events[4].value["adds"], events[4].value["max_steps"]) == (
        "adds",
        6.0,
        2,
    )


def test_the_controller_takes_the_figures_and_the_notes() -> None:
    engine = ScriptedMeasurement([0.5 + 0.1 * (n % 2) for n in range(40)], {"settled": False})
    values = measured_values([measured(engine)], SETTINGS, engine)
    figures, notes = case_figures(json.loads(json.dumps(values)), None)
    assert list(figures) == ["adds", "adds_of_peak", "adds_spread"]
    assert notes == values["notes"] and len(notes) == 1
    marked = [name for name, figure in figures.items() if figure.caveat]
    assert marked == ["adds"]
    assert figures["adds"].caveat == "the rate was not steady after the warm-up"


# ---- real ranks, a case of the test's own


CASE = """
import os, time
from benchmarks.driver.operations import Operation, UnsupportedError
class Case:
    def __init__(self, context):
        self.pause = context.settings["pause"]
    def operations(self):
        return [Operation("naps", "nap", 1.0, "naps", self.start), Operation("never", "x", 1.0, "-", self.fail)]
    def start(self):
        slow = os.environ.get("RANK", os.environ.get("PADDLE_TRAINER_ID")) == "1"
        return lambda: time.sleep(self.pause * (3 if slow else 1))
    def fail(self):
        if os.environ.get("RANK", os.environ.get("PADDLE_TRAINER_ID")) == "0":
            return lambda: None
        raise UnsupportedError("it cannot")
"""
BASE = 'case_kind = "measure"\npause = 0.002\nwindow_seconds = 0.02\nmax_warmup_windows = 5\n'


def case_folder(folder: Path, framework: str, text: str = CASE) -> LaunchArguments:
    case = folder / framework
    (case / "config").mkdir(parents=True)
    (case / "__init__.py").touch()
    (case / "case.py").write_text(text)
    (case / "config" / "_base.py").write_text(BASE)
    (case / "config" / "mutable_params.py").write_text("mutable_params = []\n")
    return LaunchArguments(case_dir=case, data_dir=folder, vendor="cpu")


@pytest.mark.parametrize("framework", ["pytorch", "paddle"])
def test_one_rank_measures(tmp_path: Path, capsys: Any, framework: str) -> None:
    events = run_here(capsys, case_folder(tmp_path, framework))
    names = [event.name for event in events]
    step = ["STEP_BEGIN", "STEP_END"]
    assert names == ["INIT_START", "HOOKS", "INIT_END", "TRAIN_START", *step, *step, "TRAIN_END", "FINISHED"]
    finished = values_of(events, "FINISHED")[0]
    assert finished["kind"] == "measure"
    assert 0 < finished["figures"]["naps"]["value"] < 500
    assert finished["init_time"] + finished["measure_time"] <= finished["e2e_time"]


@pytest.mark.parametrize("framework", ["pytorch", "paddle"])
def test_ranks_measure_together_and_the_slow_one_is_found(
    tmp_path: Path, framework: str, warm_python: str, warm_paddle: str
) -> None:
    python = {"pytorch": warm_python, "paddle": warm_paddle}[framework]
    code, ranks = launch_ranks(tmp_path / "logs", case_folder(tmp_path / "case", framework), 2, python)
    assert code == 0, (tmp_path / "logs" / "rank0.out.log").read_text()[-3000:]
    (finished,) = [value for events in ranks for value in values_of(events, "FINISHED")]
    assert finished["world_size"] == 2
    assert "rank 1, the slowest of 2" in finished["figures"]["naps"]["window"]
    assert finished["notes"][-1] == "never is left out: rank 1 of 2 alone: it cannot"
    steps = [values_of(events, "STEP_END")[0]["naps"] for events in ranks]
    assert steps[0] == steps[1] == finished["figures"]["naps"]["value"]


WORKS = """
class Case:
    def __init__(self, context): ...
    def work(self, engine, perf_log):
        perf_log.write(Mine, {"ranks": engine.world_size})
        return {"done": sum(engine.group.gather(engine.rank + 1))}
class Mine:
    value = "MINE"
"""


def test_a_case_may_do_all_its_work_by_itself(tmp_path: Path, warm_python: str) -> None:
    code, ranks = launch_ranks(tmp_path / "logs", case_folder(tmp_path, "pytorch", WORKS), 2, warm_python)
    assert code == 0, (tmp_path / "logs" / "rank0.out.log").read_text()[-3000:]
    assert [event.name for event in ranks[0]] == ["INIT_START", "INIT_END", "MINE", "FINISHED"]
    assert [event.name for event in ranks[1]] == ["INIT_START", "INIT_END", "MINE"]
    finished = values_of(ranks[0], "FINISHED")[0]
    assert (finished["kind"], finished["done"], finished["world_size"]) == ("measure", 3, 2)
    assert finished["init_time"] + finished["measure_time"] <= finished["e2e_time"]


def test_work_that_returns_no_values_is_told(tmp_path: Path, capsys: Any) -> None:
    launch = case_folder(tmp_path, "pytorch", WORKS.replace("return {", "{"))
    with pytest.raises(FlagPerfError, match="work gave None") as raised:
        run_here(capsys, launch)
    assert raised.value.where.endswith("case.py")


def test_a_class_that_lacks_a_part_is_refused_by_its_kind(tmp_path: Path, capsys: Any) -> None:
    measures = case_folder(tmp_path / "measures", "pytorch", "class Case: ...\n")
    with pytest.raises(FlagPerfError, match="lacks operations, which a case of the kind measure has"):
        run_here(capsys, measures)
    trains = case_folder(tmp_path / "trains", "pytorch", 'class Case:\n    metric = "x"\n')
    (trains.case_dir / "config" / "_base.py").write_text(
        "target_x = 1.0\nmax_steps = 1\neval_interval_steps = 1\n"
    )
    with pytest.raises(
        FlagPerfError, match=r"lacks flops_formula, build_model, training_data.* kind converge"
    ):
        run_here(capsys, trains)
