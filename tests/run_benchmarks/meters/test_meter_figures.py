"""Known truth: what meters outside the nodes tell by the controller's clock, cut by the training of rank 0's clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.names import meter_file_of
from run_benchmarks.report.samples import read_samples
from run_benchmarks.results.clocks import NodeClock
from run_benchmarks.results.round_telemetry import TelemetryOutcome, telemetry_outcome
from run_benchmarks.stages.clock import ClockReading
from tests.run_benchmarks.builders import START_MS, training_events
from utils.events import Event, EventName
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Sample, Scope, SourceInfo

TRAINED_S = 65
END_MS = START_MS + 1000 * TRAINED_S
INTERVAL_S = 2.0


def write_meter(
    folder: Path, watts: Callable[[float], float | None], scope: Scope = Scope.MACHINE, behind_ms: int = 0
) -> None:
    """What the controller read from 10 s before the training until 10 s after it: at each second of it, in W."""
    info = SourceInfo(START_MS, "redfish", scope, INTERVAL_S, "power of it in W, by redfish at bmc: a test")
    moments = range(START_MS - 10_000, END_MS + 10_000, round(1000 * INTERVAL_S))
    drawn = ((at, watts((at - START_MS) / 1000)) for at in moments)
    samples = (Sample(at - behind_ms, "redfish", power_w=power) for at, power in drawn if power)
    folder.parent.mkdir(exist_ok=True)
    meter_file_of(folder).write_text(record_line(info) + "".join(map(record_line, samples)))


def write_monitor(folder: Path, watts: float, source: str = "pwr", scope: Scope = Scope.MACHINE) -> None:
    """What the node's own monitor read, once a second."""
    folder.mkdir(parents=True, exist_ok=True)
    info = SourceInfo(START_MS, source, scope, 1.0)
    samples = (Sample(at, source, power_w=watts) for at in range(START_MS - 10_000, END_MS + 10_000, 1000))
    (folder / TELEMETRY_FILE).write_text(record_line(info) + "".join(map(record_line, samples)))


def events() -> list[Event]:
    ended = {EventName.TRAIN_END.value: END_MS, EventName.FINISHED.value: END_MS + 100}
    return [
        replace(event, time_ms=ended.get(event.name, event.time_ms))
        for event in training_events(raw_train_time=float(TRAINED_S))
    ]


def outcome(*folders: Path, clocks: tuple[NodeClock, ...] = ()) -> TelemetryOutcome:
    return telemetry_outcome(folders, events(), {}, clocks)


def ahead(seconds: float) -> NodeClock:
    """Rank 0's clock against the controller's, at both ends."""
    start_s = START_MS / 1000
    return NodeClock(
        ClockReading(start_s - 20 - seconds, seconds, 0.003),
        ClockReading(start_s + 90 - seconds, seconds, 0.003),
    )


def test_100_w_for_65_s_are_6500_j(tmp_path: Path) -> None:
    write_meter(tmp_path / "node", lambda second: 100)
    energy = outcome(tmp_path / "node").figures["energy"]
    assert energy.value == pytest.approx(6500, rel=0.01)
    assert energy.coverage == pytest.approx(1) and energy.scope == "machine"
    assert "redfish (machine)" in energy.source


def test_a_step_in_the_power_falls_at_the_right_time(tmp_path: Path) -> None:
    """300 W while it trains and 100 W else, told by a clock that is 1.5 s behind that of rank 0's node."""
    write_meter(tmp_path / "node", lambda second: 300 if 0 <= second <= TRAINED_S else 100, behind_ms=1500)
    placed = outcome(tmp_path / "node", clocks=(ahead(1.5),)).figures["energy"].value
    unplaced = outcome(tmp_path / "node").figures["energy"].value
    assert placed == pytest.approx(300 * TRAINED_S, rel=0.01)
    assert unplaced == pytest.approx(300 * TRAINED_S - 200 * 1.0, rel=0.01)
    assert placed is not None and unplaced is not None and placed - unplaced > 100


def test_a_meter_that_stops_is_a_gap(tmp_path: Path) -> None:
    write_meter(tmp_path / "node", lambda second: None if 20 < second < 45 else 100)
    result = outcome(tmp_path / "node")
    energy = result.figures["energy"]
    assert energy.value == pytest.approx(100 * (TRAINED_S - 26)), "nothing is extrapolated"
    assert energy.coverage == pytest.approx(1 - 26 / TRAINED_S) and "only 60 % of the window" in energy.caveat
    assert any("redfish was not read for 26 s" in note for note in result.notes)


def test_both_meters_of_a_machine_are_kept_and_compared(tmp_path: Path) -> None:
    write_monitor(tmp_path / "node", 150)
    write_meter(tmp_path / "node", lambda second: 100)
    result = outcome(tmp_path / "node")
    assert result.figures["energy"].value == pytest.approx(6500, rel=0.01), "what no task can write"
    assert result.telemetry is not None
    assert {"pwr", "redfish"} <= result.telemetry.nodes[0].sources.keys()
    assert any("pwr = redfish does not hold" in note for note in result.notes)


def test_a_chassis_that_nodes_share_is_nobodys(tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        write_meter(folder, lambda second: 1000, Scope.CHASSIS)
    alone = outcome(*folders)
    assert alone.figures["energy"].value is None
    assert "no part of it is ascribed to a node" in alone.figures["energy"].source
    for folder in folders:
        write_monitor(folder, 200, "nvml", Scope.ACCELERATOR)
    with_chips = outcome(*folders)
    assert with_chips.figures["energy"].value == pytest.approx(200 * TRAINED_S, rel=0.01)
    assert with_chips.figures["energy"].scope == "accelerator"
    assert sum("no part of it is ascribed" in note for note in with_chips.notes) == 2
    assert with_chips.telemetry is not None
    assert with_chips.telemetry.nodes[0].sources["redfish"].scope is Scope.CHASSIS


def test_what_tells_no_power_has_no_gaps_in_it(tmp_path: Path) -> None:
    write_meter(tmp_path / "node", lambda second: 100 + second % 4)
    info = SourceInfo(START_MS, "task", Scope.TASK, 1.0)
    used = (Sample(at, "task", memory_used_mib=512.0) for at in range(START_MS, END_MS, 1000))
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / TELEMETRY_FILE).write_text(record_line(info) + "".join(map(record_line, used)))
    result = outcome(tmp_path / "node")
    assert not result.notes
    assert result.telemetry is not None
    assert "energy" not in result.telemetry.nodes[0].sources["task"].figures


def test_a_node_cannot_speak_for_its_meter(tmp_path: Path) -> None:
    """What lies in a node's folder comes from the node."""
    write_meter(tmp_path / "node", lambda second: 100)
    write_monitor(tmp_path / "node", 5, "redfish")
    result = outcome(tmp_path / "node")
    assert result.figures["energy"].value == pytest.approx(6500, rel=0.01), (
        "what the controller has read stays"
    )
    assert any("redfish is a source that the controller reads" in note for note in result.notes)


@pytest.mark.parametrize("theirs", ["junk\n", "link", "quick"])
def test_nothing_that_a_node_writes_takes_its_meters_place(theirs: str, tmp_path: Path) -> None:
    """Two lines that are no records, or a source that says it is read more often, took the meter's reading away."""
    write_meter(tmp_path / "node", lambda second: 300)
    own = tmp_path / "node" / TELEMETRY_FILE
    if theirs == "quick":
        write_monitor(tmp_path / "node", 1)
    else:
        own.parent.mkdir()
        own.symlink_to("/dev/zero") if theirs == "link" else own.write_text(theirs * 2)
    result = outcome(tmp_path / "node")
    assert result.figures["energy"].value == pytest.approx(300 * TRAINED_S, rel=0.01)
    assert "redfish (machine)" in result.figures["energy"].source
    assert result.notes


def test_charts_have_both_files(tmp_path: Path) -> None:
    write_monitor(tmp_path / "node", 150)
    write_meter(tmp_path / "node", lambda second: 100, behind_ms=1500)
    (node,) = read_samples([tmp_path / "node"], [ahead(1.5)])
    assert not node.doubt
    assert node.devices["redfish", ""].times[0] == node.devices["pwr", ""].times[0]
    (tmp_path / "node" / TELEMETRY_FILE).unlink()
    (node,) = read_samples([tmp_path / "node"], [ahead(1.5)])
    assert list(node.devices) == [("redfish", "")]
