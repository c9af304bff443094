"""Figures of power where a node's clock was set, by any time, while it was read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from run_benchmarks.names import meter_file_of
from run_benchmarks.results.phases import PhaseEvents
from run_benchmarks.results.power import NAMES as POWER
from run_benchmarks.results.round_telemetry import TelemetryOutcome, telemetry_outcome
from tests.run_benchmarks.builders import END_MS, START_MS, training_events
from utils.events import Event, EventName
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Scope, SourceInfo, Tick

RANKS_MS = START_MS - 3_000
BEGIN_MS = RANKS_MS - 5_000
OF_TRAINING = {*POWER} - {"idle_power"}


def write_node(folder: Path, set_at_ms: int, moved_ms: int, *, by_controller: bool = False) -> Path:
    """A node whose machine was read once a second, and whose clock, or the controller's, was set at a moment."""
    folder.mkdir()
    lines = [record_line(SourceInfo(BEGIN_MS, "redfish", Scope.MACHINE, 1.0))]
    for at in range(BEGIN_MS, END_MS + 5_000, 1_000):
        time_ms = at + (moved_ms if at >= set_at_ms else 0)
        readings = {"power_w": [100.0 + at // 1000 % 2]}
        lines.append(
            record_line(Tick(time_ms, "redfish", [""], readings, monotonic_ms=at - BEGIN_MS + 77_000))
        )
    (folder / TELEMETRY_FILE).write_text("".join([] if by_controller else lines))
    if by_controller:
        meter_file_of(folder).write_text("".join(lines))
    return folder


def judged(*folders: Path, **finished: float) -> TelemetryOutcome:
    init = Event(EventName.INIT_START, {"ranks_start_ms": RANKS_MS}, RANKS_MS + 1)
    events = [init, *training_events(**finished)[1:]]
    phases = PhaseEvents()
    for event in events:
        phases.take(event)
    return telemetry_outcome(folders, events, dict.fromkeys(range(len(folders)), phases))


def marked(outcome: TelemetryOutcome) -> set[str]:
    return {name for name in POWER if "clock was set by" in outcome.figures[name].caveat}


@pytest.mark.parametrize(
    ("set_at_ms", "figures"),
    [
        (BEGIN_MS + 2_000, {"idle_power", "energy_above_idle"}),
        (RANKS_MS + 2_000, set()),
        (START_MS + 5_000, OF_TRAINING - {"energy_to_target"}),
        (END_MS + 3_000, set()),
    ],
)
def test_what_is_of_the_time_in_which_a_clock_was_set_is_marked(
    set_at_ms: int, figures: set[str], tmp_path: Path
) -> None:
    """By less than what the training's own two clocks may differ by."""
    outcome = judged(write_node(tmp_path / "h0_noderank0", set_at_ms, 900))
    assert outcome.figures["energy"].value and marked(outcome) == figures
    told = [note for note in outcome.notes if "clock was set by +0.9 s" in note]
    assert len(told) == (set_at_ms < END_MS) == len(outcome.notes)
    if figures:
        seconds = (set_at_ms - 1_000 - START_MS) / 1000
        when = f"about {abs(seconds):g} s {'after' if seconds > 0 else 'before'} TRAIN_START"
        assert told[0].startswith(
            f"h0_noderank0: its clock was set by +0.9 s, or its machine slept so long, {when}: "
        )


def test_of_several_nodes_all_is_placed_by_the_clock_but_what_is_of_it_alone(tmp_path: Path) -> None:
    nodes = [
        write_node(tmp_path / "h0_noderank0", 0, 0),
        write_node(tmp_path / "h1_noderank1", END_MS + 2_000, -700),
    ]
    outcome = judged(*nodes)
    assert marked(outcome) == OF_TRAINING - {"energy_to_target"}
    assert outcome.figures["energy"].caveat.startswith("h1_noderank1: its clock was set by -0.7 s")
    assert [note.partition(":")[0] for note in outcome.notes] == ["h1_noderank1"]


def test_the_controllers_clock_is_that_of_the_meters_which_it_reads(tmp_path: Path) -> None:
    outcome = judged(write_node(tmp_path / "h0_noderank0", RANKS_MS + 2_000, 900, by_controller=True))
    assert marked(outcome) == OF_TRAINING - {"energy_to_target"}
    assert outcome.figures["energy"].caveat.startswith(
        "h0_noderank0: the controller's clock was set by +0.9 s"
    )


def test_a_clock_that_the_trainings_own_times_contradict_is_told_of_the_node_too(tmp_path: Path) -> None:
    """Also where nothing else says so, as of versions that wrote no monotonic time; once."""
    node = write_node(tmp_path / "h0_noderank0", START_MS + 5_000, 0)
    outcome = judged(node, raw_train_time=50.0)
    told = "the wall clock says 10 s of training, FINISHED 50 s"
    assert outcome.figures["energy"].caveat == told
    (note,) = outcome.notes
    assert note.startswith(f"h0_noderank0: {told}: what was sampled by that clock is doubtful")
    assert "of phases and of devices" in note
    of_both = judged(write_node(tmp_path / "h1_noderank0", START_MS + 5_000, -5_000), raw_train_time=50.0)
    assert [note for note in of_both.notes if "clock" in note] == [of_both.notes[0]]


def test_whatever_a_stranger_writes_for_a_clock_ends_nothing(tmp_path: Path) -> None:
    node = write_node(tmp_path / "h0_noderank0", 0, 0)
    lines = (node / TELEMETRY_FILE).read_text().splitlines()
    odd = [0, 2**53, 1, 2**53 - 1] * len(lines)
    with (node / TELEMETRY_FILE).open("w") as file:
        for line, monotonic_ms in zip(lines, odd, strict=False):
            record = json.loads(line)
            file.write(
                json.dumps(record | ({"monotonic_ms": monotonic_ms} if record["kind"] == "tick" else {}))
                + "\n"
            )
    assert judged(node).figures["energy"].value
