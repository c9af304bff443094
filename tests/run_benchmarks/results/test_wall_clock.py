"""What a script of a case's own timed while the clock of rank 0's node was set, and how that is marked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.comparison.derived import figures_of
from run_benchmarks.comparison.selecting import ComparedRound
from run_benchmarks.comparison.statistics import OlympicMean, olympic_mean_of
from run_benchmarks.hosts.granted import GrantedJob
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.report.spread import spread_tables
from run_benchmarks.results.clocks import NodeClock
from run_benchmarks.results.judge import judge_logs
from run_benchmarks.results.planned import planned
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.stages.clock import ClockReading
from tests.run_benchmarks.builders import (
    FINISHED,
    START_MS,
    make_case,
    observed,
    with_own_script,
    write_rank_log,
)
from utils.events import Event, EventName, parse_line
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Scope, SourceInfo, Tick

TRAINED_S, EVALUATED_S = 300, 290
INIT_MS = START_MS - 10_000
SET_S = 40.0  # after TRAIN_START
OF_TRAINING = {"raw_train_time", "no_eval_time", "p_whole", "p_train", "MFU", "tokens_per_second"}
ALL = OF_TRAINING | {"e2e_time", "time_to_target"}


class Training:
    """A training of 300 s, whose wall clock is set by `moved_s` at `set_s` after its start."""

    def __init__(self, folder: Path, moved_s: float, set_s: float = SET_S) -> None:
        self.folder, self.moved_ms = folder / "h1_noderank0", round(moved_s * 1000)
        self.set_ms = START_MS + round(set_s * 1000)
        self.case = replace(
            with_own_script(make_case(["h1"])), parameters={"target_mlm_accuracy": 0.3}, differs={}
        )

    def wall_ms(self, at_ms: int) -> int:
        return at_ms + (self.moved_ms if at_ms >= self.set_ms else 0)

    def write_events(self, **finished: Any) -> None:
        """As a script writes them that times by the wall clock; `finished` is FINISHED's own."""
        end_ms = START_MS + TRAINED_S * 1000
        took_s = (self.wall_ms(end_ms) - START_MS) / 1000
        own = {
            "e2e_time": took_s + 12,
            "init_time": 5.0,
            "raw_train_time": took_s,
            "no_eval_time": took_s - 5,
        }
        left_out = dict.fromkeys(("time_to_target", "pure_compute_time"))
        marks = [
            (EventName.INIT_START, {}, INIT_MS),
            (EventName.INIT_END, {}, INIT_MS + 5_000),
            (EventName.TRAIN_START, {}, START_MS),
            (EventName.EVALUATE, {"mlm_accuracy": 0.33}, START_MS + EVALUATED_S * 1000),
            (EventName.TRAIN_END, {}, end_ms),
            (EventName.FINISHED, {**FINISHED, **left_out, **own, **finished}, end_ms + 10),
        ]
        write_rank_log(self.folder, [Event(name, value, self.wall_ms(at)) for name, value, at in marks])

    def write_telemetry(self, until_s: int = TRAINED_S + 20) -> None:
        lines = [record_line(SourceInfo(INIT_MS, "host", Scope.HOST, 1.0))]
        for at in range(INIT_MS - 5_000, START_MS + until_s * 1000, 1_000):
            tick = Tick(self.wall_ms(at), "host", [""], {"load": [1.0]}, monotonic_ms=at - INIT_MS + 99_000)
            lines.append(record_line(tick))
        (self.folder / TELEMETRY_FILE).write_text("".join(lines))

    def judged(self, clock: NodeClock | None = None, train_s: float = 330.0, **also: Any) -> RoundResult:
        seen = replace(observed(self.case), time_s=400.0, times={"train": train_s}, **also)
        clocks = (clock or self.clock(),)
        return judge_logs(planned(self.case), [self.folder], replace(seen, clocks=clocks))

    def clock(self) -> NodeClock:
        """As the controller read it at both ends of the round."""
        begin, end = INIT_MS / 1000 - 50, START_MS / 1000 + TRAINED_S + 30
        return NodeClock(ClockReading(begin, 0.0, 0.001), ClockReading(end, self.moved_ms / 1000, 0.001))


def marked(result: RoundResult) -> set[str]:
    return {name for name, each in result.figures.items() if "script may have timed this" in each.caveat}


Made = Callable[..., Training]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    def make(moved_s: float, set_s: float = SET_S, **finished: Any) -> Training:
        training = Training(tmp_path, moved_s, set_s)
        training.write_events(**finished)
        training.write_telemetry()
        return training

    return make


@pytest.mark.parametrize(("moved_s", "told"), [(-20.0, "-20 s"), (40.0, "+40 s"), (0.5, "+0.5 s")])
def test_what_a_script_timed_while_its_clock_was_set_is_marked(moved_s: float, told: str, made: Made) -> None:
    result = made(moved_s).judged(NodeClock())
    assert marked(result) == ALL and result.rules.stamp is None
    why = f"h1: its clock was set by {told}, or its machine slept so long, about 39 s after TRAIN_START"
    assert all(result.figures[name].caveat.startswith(why) for name in ALL)
    assert "not proved of" in result.rules.doubt and why in result.rules.doubt
    assert result.rules.doubt in result.notes


def test_what_follows_from_a_marked_figure_is_marked(made: Made, tmp_path: Path) -> None:
    training = made(-20.0)
    settings = {"settings": {"nnodes": 1, "nproc": 1}}
    derived = figures_of(ComparedRound("run1", tmp_path, training.judged(), {}, settings))
    names = ("p_whole_per_chip", "p_train_per_node", "chip_seconds_to_target")
    assert all(derived[name].value and "clock was set" in derived[name].caveat for name in names)


@pytest.mark.parametrize(
    ("set_s", "figures"),
    [(-7.0, {"e2e_time", "init_time"}), (EVALUATED_S + 5, ALL - {"time_to_target"}), (TRAINED_S + 10, set())],
)
def test_only_what_is_of_the_time_in_which_it_was_set(set_s: float, figures: set[str], made: Made) -> None:
    result = made(3.0, set_s).judged()
    assert marked(result) == figures
    assert result.rules.stamp == (None if figures else "closed")


@pytest.mark.parametrize("moved_s", [0.0, 0.25])
def test_a_clock_that_was_moved_by_less_than_a_thousandth_marks_nothing(moved_s: float, made: Made) -> None:
    result = made(moved_s).judged()
    assert not marked(result) and result.rules.stamp == "closed"


@pytest.mark.parametrize(("moved_s", "is_marked"), [(-20.0, True), (40.0, True), (1.1, False)])
def test_without_telemetry_the_controllers_readings_tell(moved_s: float, is_marked: bool, made: Made) -> None:
    """A quartz drifts, and a round is long: by a second and a thousandth no clock was set."""
    training = made(moved_s)
    (training.folder / TELEMETRY_FILE).unlink()
    result = training.judged()
    assert bool(marked(result)) is is_marked
    if is_marked:
        assert marked(result) == ALL | {"init_time"}  # when it was nobody knows
        assert f"clock moved by {moved_s:+.4g} s against the controller's" in result.figures["p_whole"].caveat


@pytest.mark.parametrize("moved_s", [172_800.0, -172_800.0, 1_000.0])
def test_a_controller_with_another_clock_took_the_round_up(moved_s: float, made: Made) -> None:
    """The node's own was not set by so much: the training would be longer by it than the round was."""
    training = made(0.0)
    (training.folder / TELEMETRY_FILE).unlink()
    begin = INIT_MS / 1000 - 50
    readings = ClockReading(begin, 0.0, 0.001), ClockReading(begin + 400 - moved_s, moved_s, 0.001)
    result = training.judged(NodeClock(*readings))
    assert not marked(result) and result.rules.stamp == "closed"


@pytest.mark.parametrize("moved_s", [900.0, -900.0])
def test_a_clock_that_was_set_by_more_than_the_round_took(moved_s: float, made: Made) -> None:
    training = made(moved_s, raw_train_time=300.0, no_eval_time=295.0, e2e_time=312.0)
    (training.folder / TELEMETRY_FILE).unlink()
    result = training.judged()
    assert {"e2e_time", "time_to_target"} & marked(result) and result.rules.stamp is None


def test_telemetry_that_broke_off_has_not_watched_the_rest(made: Made) -> None:
    training = made(-20.0)
    training.write_telemetry(until_s=20)
    assert marked(training.judged()) == ALL
    assert not marked(training.judged(NodeClock()))


def test_a_clock_that_was_set_back_behind_its_start(made: Made) -> None:
    """No time of training is left, and with it no telemetry."""
    result = made(-500.0, raw_train_time=300.0, no_eval_time=295.0, e2e_time=312.0).judged(NodeClock())
    assert marked(result) > OF_TRAINING and result.rules.stamp is None
    assert "by its clock TRAIN_END does not come after TRAIN_START" in result.figures["p_whole"].caveat


def test_a_script_that_times_by_the_monotonic_clock(made: Made) -> None:
    """Its training is borne out; what FlagPerf takes from the events' times is not."""
    result = made(-20.0, raw_train_time=300.02, no_eval_time=295.0, e2e_time=312.0).judged()
    assert marked(result) == {"e2e_time", "time_to_target"}
    assert result.figures["time_to_target"].value == EVALUATED_S - 20


def test_the_shared_driver_times_by_a_clock_that_nobody_sets(made: Made) -> None:
    training = made(-20.0)
    training.case = replace(make_case(["h1"]), parameters={"target_mlm_accuracy": 0.3}, differs={})
    assert not marked(training.judged())


def test_of_a_cases_own_figures_those_of_time(made: Made) -> None:
    about = {"value": 2.5, "window": "all", "better": None, "definition": "its own"}
    units = {"own_rate": "GB/s", "own_time": "ms", "own_size": "GiB", "own_chip_rate": "img/s/chip"}
    result = made(-20.0, figures={name: {**about, "unit": unit} for name, unit in units.items()}).judged()
    assert marked(result) - ALL == {"own_rate", "own_time", "own_chip_rate"}


@pytest.mark.parametrize(
    ("finished", "train_s", "told"),
    [
        ({}, 330.0, ""),
        ({}, 800.0, "e2e_time is 312 s, but its ranks ran for 800 s"),
        ({"e2e_time": None}, 800.0, "init_time + raw_train_time is 305 s, but its ranks ran for 800 s"),
        (dict.fromkeys(("e2e_time", "raw_train_time")), 800.0, ""),
        ({"e2e_time": 20.0, "raw_train_time": 8.0, "no_eval_time": 8.0}, 79.0, ""),
    ],
)
def test_a_script_that_says_it_was_done_in_half_the_time(
    finished: dict[str, Any], train_s: float, told: str, made: Made
) -> None:
    notes = [
        note for note in made(0.0, **finished).judged(train_s=train_s).notes if "its ranks ran for" in note
    ]
    assert len(notes) == bool(told) and all(note.startswith(told) for note in notes)


@pytest.mark.parametrize(
    ("unwatched_s", "suspended_s", "is_told"),
    [(0.0, 0.0, True), (300.0, 0.0, False), (0.0, 300.0, False), (200.0, 100.0, False), (900.0, 0.0, False)],
)
def test_what_a_controller_did_not_see_is_none_of_the_ranks_time(
    unwatched_s: float, suspended_s: float, is_told: bool, made: Made
) -> None:
    job = GrantedJob("slurm", "7", ("h1",), suspended_s=suspended_s)
    result = made(0.0).judged(train_s=800.0, unwatched_s=unwatched_s, allocation=job)
    assert any("its ranks ran for" in note for note in result.notes) is is_told


def test_what_rounds_come_to_together_is_marked_as_each_of_them(made: Made) -> None:
    right, wrong = made(0.0).judged(), made(-20.0).judged()
    mean = olympic_mean_of([right, wrong, wrong], 0)
    assert (
        mean and mean.text().endswith("*") and "* MLPerf mean of B: h1: its clock was set" in mean.note("B")
    )
    assert olympic_mean_of([right] * 3, 0) == OlympicMean(float(EVALUATED_S))
    ((_, table),) = spread_tables([right, wrong])
    names = {row[0] for row in table.rows}
    assert {"p_train*", "time_to_target*", "init_time"} <= names
    (note,) = (note for note in table.footnotes if "clock was set" in note and "p_train" in note)
    assert note.startswith("* ") and "init_time" not in note
    ((_, table),) = spread_tables([right, right])
    assert not any("*" in row[0] for row in table.rows) and not any("*" in note for note in table.footnotes)


def of_driver(training: Training) -> CasePlan:
    return replace(make_case(["h1"]), parameters=training.case.parameters, differs={})


CONTRADICTION = "h1: raw_train_time is 30 s, but TRAIN_START to TRAIN_END took 300 s"


@pytest.mark.parametrize("is_sampled", [True, False])
@pytest.mark.parametrize("clock", [None, NodeClock()])
@pytest.mark.parametrize("uses_driver", [True, False])
def test_a_time_trained_that_the_events_contradict_marks_its_rates(
    uses_driver: bool, clock: NodeClock | None, is_sampled: bool, made: Made
) -> None:
    """Ten times the rates: a clock that was set would explain it, and one that nobody watched may have been."""
    times = dict.fromkeys(("raw_train_time", "no_eval_time", "pure_compute_time"), 30.0)
    training: Training = made(0.0, **times, time_to_target=30.0 if uses_driver else None)
    if not is_sampled:
        (training.folder / TELEMETRY_FILE).unlink()
    training.case = of_driver(training) if uses_driver else training.case
    result = training.judged(clock)
    assert result.failure is None
    doubted = {name for name, each in result.figures.items() if CONTRADICTION in each.caveat}
    is_seen = is_sampled or clock is None
    assert doubted == (OF_TRAINING | {"pure_compute_time", "p_core"} if is_seen or not uses_driver else set())
    assert not doubted or CONTRADICTION in result.rules.doubt
    assert not doubted or result.rules.stamp is None


def test_a_time_trained_that_a_set_clock_contradicts_marks_nothing_of_the_driver(made: Made) -> None:
    training: Training = made(300.0, raw_train_time=300.0, no_eval_time=290.0, time_to_target=300.0)
    training.case = of_driver(training)
    result = training.judged()
    assert not any("raw_train_time is" in each.caveat for each in result.figures.values())


def test_a_small_step_of_the_clock_explains_no_time_that_is_far_off(made: Made) -> None:
    training: Training = made(0.5, raw_train_time=30.0, no_eval_time=30.0, time_to_target=30.0)
    training.case = of_driver(training)
    assert "raw_train_time is 30 s" in training.judged().rules.doubt


def test_a_script_that_begins_its_training_anew_may_have_timed_both(made: Made) -> None:
    training: Training = made(0.0)
    log = training.folder / "rank0.out.log"
    middle_ms = START_MS + 250_000
    again = [Event(EventName.TRAIN_END, {}, middle_ms), Event(EventName.TRAIN_START, {}, middle_ms)]
    events = [event for line in log.read_text().splitlines() if (event := parse_line(line))]
    write_rank_log(training.folder, [*events[:3], *again, *events[3:]])
    assert "raw_train_time is" not in training.judged().rules.doubt
