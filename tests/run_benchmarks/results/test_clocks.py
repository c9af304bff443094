"""Nodes whose clocks differ: what they sampled is put on the time line of global rank 0's events."""

from __future__ import annotations

from pathlib import Path

import pytest

from run_benchmarks.names import meter_file_of
from run_benchmarks.report.samples import read_samples
from run_benchmarks.results.clocks import NodeClock, clock_notes, placements
from run_benchmarks.results.round_telemetry import telemetry_outcome
from run_benchmarks.stages.clock import ClockReading
from tests.run_benchmarks.builders import END_MS, START_MS, training_events
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Sample, Scope, SourceInfo

START_S, END_S = START_MS / 1000, END_MS / 1000
SURE_S = 0.005  # how sure the controller is of a clock


def reading(time_s: float, offset_s: float) -> ClockReading:
    return ClockReading(time_s, offset_s, SURE_S)


def steady(offset_s: float) -> NodeClock:
    """A clock that is so far ahead of the controller's at both ends of the round."""
    return NodeClock(reading(START_S - 5, offset_s), reading(END_S + 5, offset_s))


def write_steps(folder: Path, ahead_ms: int) -> Path:
    """A node that draws 100 W until the training's begin, 300 W in it, and 100 W after; by a clock that is ahead."""
    folder.mkdir()
    info = SourceInfo(START_MS, "pwr", Scope.MACHINE, 0.1)
    samples = (
        Sample(at + ahead_ms, "pwr", power_w=300.0 if START_MS <= at <= END_MS else 100.0)
        for at in range(START_MS - 5000, END_MS + 5000, 100)
    )
    (folder / TELEMETRY_FILE).write_text(record_line(info) + "".join(map(record_line, samples)))
    return folder


def test_two_nodes_1_5_s_apart_have_the_same_energy(tmp_path: Path) -> None:
    folders = [write_steps(tmp_path / "first", 0), write_steps(tmp_path / "second", 1500)]
    seconds = END_S - START_S
    unplaced = telemetry_outcome(folders, training_events(), {}).figures["energy"].value
    placed = (
        telemetry_outcome(folders, training_events(), {}, [steady(0.0), steady(1.5)]).figures["energy"].value
    )
    assert placed == pytest.approx(300 * seconds, rel=0.002)
    assert unplaced == pytest.approx(300 * seconds - 0.5 * 1.5 * 200, rel=0.002), "half of the nodes is off"


def test_what_counts_is_the_clock_of_rank_0(tmp_path: Path) -> None:
    """The window stands in the time of rank 0's node, which need not be the controller's."""
    folders = [write_steps(tmp_path / "first", 0), write_steps(tmp_path / "second", -700)]
    outcome = telemetry_outcome(folders, training_events(), {}, [steady(3600.5), steady(3599.8)])
    figures, notes = outcome.figures, outcome.notes
    assert figures["energy"].value == pytest.approx(300 * (END_S - START_S), rel=0.002)
    assert not notes


def test_a_drift_between_both_ends_is_interpolated() -> None:
    begin, end = 1000.0, 2000.0
    drifting = NodeClock(reading(begin, 1.0), reading(end, 3.0))
    of_second = placements([steady(0.0), drifting], 2)[1].own
    assert of_second(1_001_000) == 1_000_000
    assert of_second(2_003_000) == 2_000_000
    assert of_second(1_502_000) == 1_500_000
    assert of_second(901_000) == 900_000, "before the first reading the offset is that one's"
    assert of_second(2_103_000) == 2_100_000
    for moment in (900.0, 1000.0, 1250.5, 2000.0, 2100.0):
        assert drifting.to_controller_s(drifting.from_controller_s(moment)) == pytest.approx(moment)


def test_a_clock_that_was_set_back_behind_its_begin_is_placed_by_its_begin() -> None:
    back = NodeClock(reading(1000.0, 0.0), reading(1010.0, -60.0))
    assert placements([steady(0.0), back], 2)[1].own(1_005_000) == 1_005_000


@pytest.mark.parametrize("set_s", [20.0, -20.0, -70.0, -3 * 86_400.0])
def test_a_controllers_clock_that_was_set_moves_nothing_between_nodes(set_s: float) -> None:
    """As one that takes a round up after three days; both nodes' clocks are right, but for 0.3 s."""
    first, second = (
        NodeClock(reading(1e6, ahead), reading(1e6 + 60.0 + set_s, ahead - set_s)) for ahead in (0.0, 0.3)
    )
    of_second = placements([first, second], 2)[1].own
    for moment in (1_000_000_000, 1_000_030_000, 1_000_060_000):
        assert of_second(moment + 300) == pytest.approx(moment, abs=1)


def test_what_was_not_read_is_taken_to_be_right() -> None:
    for clocks in ([], [steady(2.0), NodeClock()], [NodeClock(), steady(2.0)]):
        assert placements(clocks, 2)[1].own(1000) == 1000
    assert placements([], 1)[0].controllers(1000) == 1000


def test_what_the_controller_read_is_placed_by_the_clock_of_rank_0() -> None:
    second = placements([steady(1.5), steady(-4.0)], 2)[1]
    assert second.controllers(int(START_MS)) == START_MS + 1500


def test_a_clock_that_was_set_in_the_round_is_told_of() -> None:
    kept = NodeClock(reading(0.0, 0.01), reading(600.0, 0.06))
    was_set = NodeClock(reading(0.0, 0.01), reading(600.0, 2.01))
    assert list(clock_notes(["a", "b", "c"], [kept, was_set, NodeClock()])) == [
        "b: its clock moved by +2 s against the controller's while the round went on: what was sampled there is "
        "placed as if it had moved evenly"
    ]


@pytest.mark.parametrize(("by_s", "is_marked"), [(-10.0, True), (5.0, True), (1.0, False)])
def test_figures_of_a_node_whose_clock_was_set_are_marked(
    by_s: float, is_marked: bool, tmp_path: Path
) -> None:
    folders = [write_steps(tmp_path / "first", 0), write_steps(tmp_path / "second", 0)]
    was_set = NodeClock(reading(START_S - 5, 0.0), reading(END_S + 5, by_s))
    outcome = telemetry_outcome(folders, training_events(), {}, [steady(0.0), was_set])
    caveat = f"second: its clock moved by {by_s:+.3g} s against rank 0's while the round went on"
    assert (caveat in outcome.figures["energy"].caveat) == is_marked


def test_a_clock_of_the_controllers_that_was_set_moves_no_node_against_another(tmp_path: Path) -> None:
    folders = [write_steps(tmp_path / "first", 0), write_steps(tmp_path / "second", 0)]
    was_set = NodeClock(reading(START_S - 5, 0.0), reading(END_S + 5, 30.0))
    outcome = telemetry_outcome(folders, training_events(), {}, [was_set, was_set])
    assert "clock" not in outcome.figures["energy"].caveat


def test_figures_of_a_meter_are_marked_where_the_controllers_clock_was_set(tmp_path: Path) -> None:
    folder = write_steps(tmp_path / "first", 0)
    (folder / TELEMETRY_FILE).rename(meter_file_of(folder))
    was_set = NodeClock(reading(START_S - 5, 0.0), reading(END_S + 5, 60.0))
    outcome = telemetry_outcome([folder], training_events(), {}, [was_set])
    caveat = "first: the controller's clock moved by -60 s against rank 0's while the round went on"
    assert outcome.figures["energy"].caveat.endswith(caveat)


def test_charts_of_several_nodes_are_on_one_time_line(tmp_path: Path) -> None:
    folders = [write_steps(tmp_path / "first", 0), write_steps(tmp_path / "second", 1500)]
    nodes = read_samples(folders, [steady(0.0), steady(1.5)])
    first, second = (node.devices["pwr", ""].times for node in nodes)
    assert list(first) == list(second)
