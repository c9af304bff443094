"""Energy and power over the training's own window, from what the monitors wrote on the nodes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.results.power import scope_in, training_window
from run_benchmarks.results.round_telemetry import telemetry_outcome
from run_benchmarks.results.telemetry_file import read_power
from tests.run_benchmarks.builders import END_MS, FINISHED, START_MS, training_events
from utils.events import Event, EventName
from utils.figures import Figure
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Sample, Scope, SourceInfo, Window

NAMES = {"energy", "avg_power", "max_power", "samples_per_joule"}
SECONDS = (END_MS - START_MS) // 1000  # the window is 10 s long


def write_telemetry(
    folder: Path,
    power: Sequence[float],
    *,
    source: str = "redfish",
    scope: Scope = Scope.MACHINE,
    first_second: int = -2,
    reason: str = "",
) -> Path:
    """A node that sampled this power, once a second from 2 s before the training on."""
    folder.mkdir(parents=True, exist_ok=True)
    info = SourceInfo(START_MS - 5000, source, scope, 1.0, reason=reason)
    samples = [
        Sample(START_MS + 1000 * (first_second + second), source, power_w=watts)
        for second, watts in enumerate(power)
    ]
    (folder / TELEMETRY_FILE).write_text(record_line(info) + "".join(map(record_line, samples)))
    return folder


def figures_of(folders: Sequence[Path], events: Sequence[Event]) -> dict[str, Figure]:
    """The figures of nodes of whose telemetry nothing was left out."""
    outcome = telemetry_outcome(folders, events, {})
    assert not [note for note in outcome.notes if "was not read for" not in note]
    return {name: outcome.figures[name] for name in NAMES}


def values(figures: dict[str, Figure]) -> dict[str, float | None]:
    return {name: figure.value for name, figure in figures.items()}


def test_of_many_samples_there_is_no_object_for_each(tmp_path: Path) -> None:
    """A task may write five million of them: at half a KiB each they would fill the memory."""
    count = 20_000
    lines = [
        record_line(
            Sample(START_MS - place, "redfish", f"{place % 50}", power_w=place + 0.5, energy_mj=place)
        )
        for place in range(count)  # against the order of time, which costs most
    ]
    write_telemetry(tmp_path, [])
    with (tmp_path / TELEMETRY_FILE).open("a") as file:
        file.writelines(lines)
    del lines
    tracemalloc.start()
    telemetry = read_power(tmp_path / TELEMETRY_FILE)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    times = telemetry.series("redfish")["7"].times_ms
    assert len(times) == count / 50 and list(times) == sorted(times)
    assert telemetry.samples == () and held < 60 * count and peak < 100 * count


def test_one_node(tmp_path: Path) -> None:
    before, after = [900.0] * 2, [50.0] * 5  # what is outside the training does not count
    node = write_telemetry(tmp_path / "n0", [*before, *[200.0] * 5, 260.0, *[200.0] * 5, *after])
    figures = figures_of([node], training_events())
    assert values(figures) == {
        "energy": pytest.approx(2060.0),
        "avg_power": pytest.approx(206.0),
        "max_power": 260.0,
        "samples_per_joule": pytest.approx(1000 / 2060),
    }
    units = {name: figure.unit for name, figure in figures.items()}
    assert units == {
        "energy": "J/node",
        "avg_power": "W/node",
        "max_power": "W/node",
        "samples_per_joule": "samples/J",
    }
    assert "redfish (machine)" in figures["energy"].source
    assert {figure.scope for figure in figures.values()} == {"machine"}
    assert {scope_in(figures[name].source) for name in ("energy", "avg_power", "max_power")} == {"machine"}
    assert (figures["energy"].coverage, figures["energy"].caveat) == (1.0, "")


def test_several_nodes_are_averaged_and_all_of_them_pay_for_the_samples(tmp_path: Path) -> None:
    nodes = [
        write_telemetry(tmp_path / f"n{rank}", [watts] * (SECONDS + 6))
        for rank, watts in enumerate((100.0, 300.0))
    ]
    figures = figures_of(nodes, training_events())
    assert figures["energy"].value == pytest.approx(2000.0)
    assert figures["avg_power"].value == pytest.approx(200.0)
    assert figures["samples_per_joule"].value == pytest.approx(1000 / 4000)
    assert figures["energy"].source == (
        "mean of 2 nodes; n0, n1: redfish (machine): power integrated by the trapezoid rule"
    )
    assert (figures["energy"].coverage, figures["energy"].caveat) == (1.0, "")


def test_a_node_without_power_leaves_the_round_without_it(tmp_path: Path) -> None:
    good = write_telemetry(tmp_path / "n0", [100.0] * (SECONDS + 6))
    bad = write_telemetry(tmp_path / "n1", [], reason="no /dev/ipmi0 on this machine")
    figures = figures_of([good, bad], training_events())
    assert set(figures) == NAMES
    assert set(values(figures).values()) == {None}
    assert figures["energy"].source == "n1: redfish: no /dev/ipmi0 on this machine"


def test_a_node_whose_monitor_wrote_nothing(tmp_path: Path) -> None:
    figures = figures_of([tmp_path / "nowhere"], training_events())
    assert set(values(figures).values()) == {None}
    assert "telemetry.jsonl: cannot be read: No such file" in figures["max_power"].source


def test_nodes_that_measure_different_things_have_no_mean(tmp_path: Path) -> None:
    """A whole machine on one node, the processor alone on the other."""
    machine = write_telemetry(tmp_path / "n0", [500.0] * (SECONDS + 6))
    package = write_telemetry(tmp_path / "n1", [80.0] * (SECONDS + 6), source="rapl", scope=Scope.PACKAGE)
    figures = figures_of([machine, package], training_events())
    assert set(values(figures).values()) == {None}
    assert figures["avg_power"].source.endswith("there is no mean: n0: machine; n1: cpu package")


def test_nodes_that_measure_the_same_part_by_other_sources_are_told_and_marked(tmp_path: Path) -> None:
    nodes = [
        write_telemetry(tmp_path / f"n{rank}", [100.0] * (SECONDS + 6), source=source)
        for rank, source in enumerate(("redfish", "pwr", "redfish"))
    ]
    figures = figures_of(nodes, training_events())
    assert figures["energy"].value == pytest.approx(1000.0)
    assert figures["energy"].source.startswith("mean of 3 nodes; n0, n2: redfish (machine): power")
    assert "; n1: pwr (machine): power integrated" in figures["energy"].source
    assert "by the same source" in figures["energy"].caveat
    assert figures["samples_per_joule"].caveat == figures["energy"].caveat


@pytest.mark.parametrize(("seconds", "energy"), [(10, 700.0), (9, 600.0), (8, 500.0), (7, None)])
def test_energy_of_a_part_of_the_window_is_marked_and_of_less_than_half_it_is_none(
    seconds: int, energy: float | None, tmp_path: Path
) -> None:
    node = write_telemetry(tmp_path / "n0", [100.0] * seconds)
    figure = figures_of([node], training_events())["energy"]
    assert figure.value == (None if energy is None else pytest.approx(energy))
    assert figure.coverage == pytest.approx((seconds - 3) / 10)
    caveat = f"only {seconds - 3}0 % of the window was sampled"
    assert caveat in (figure.source if energy is None else figure.caveat)


def test_the_nodes_that_were_sampled_in_part_are_named(tmp_path: Path) -> None:
    nodes = [
        write_telemetry(tmp_path / f"n{rank}", [100.0] * seconds) for rank, seconds in enumerate((10, 20, 9))
    ]
    figure = figures_of(nodes, training_events())["energy"]
    assert figure.coverage == pytest.approx(0.6)
    assert figure.caveat == "only 60 % of the window was sampled on n0, n2"


def test_samples_per_joule_needs_the_whole_window(tmp_path: Path) -> None:
    """A part of the window's energy set against all of its samples would flatter."""
    node = write_telemetry(tmp_path / "n0", [100.0] * 10)  # ends 7 s into the training
    figures = figures_of([node], training_events())
    assert figures["avg_power"].value == pytest.approx(100.0)
    assert figures["samples_per_joule"].value is None
    assert figures["samples_per_joule"].coverage == pytest.approx(0.7)
    assert "only 70 % of the window" in figures["samples_per_joule"].source


def test_the_reasons_of_sources_stand_in_one_order_whichever_was_written_first(tmp_path: Path) -> None:
    scopes = {"rapl": Scope.PACKAGE, "pwr": Scope.MACHINE, "mem": Scope.HOST, "acme": Scope.ACCELERATOR}
    lines = [
        record_line(SourceInfo(START_MS, name, scope, 1.0, reason="none")) for name, scope in scopes.items()
    ]
    for order in (lines, lines[::-1]):
        (tmp_path / TELEMETRY_FILE).write_text("".join(order))
        reason = figures_of([tmp_path], training_events())["energy"].source
        assert reason == "pwr: none; acme: none; rapl: none"


@pytest.mark.parametrize("samples", [None, "many", float("nan")])
def test_samples_that_are_not_known(samples: Any, tmp_path: Path) -> None:
    node = write_telemetry(tmp_path / "n0", [100.0] * (SECONDS + 6))
    figures = figures_of([node], training_events(num_trained_samples=samples))
    assert figures["energy"].value == pytest.approx(1000.0)
    assert figures["samples_per_joule"].value is None
    assert "num_trained_samples" in figures["samples_per_joule"].source


def test_no_sample_in_the_window(tmp_path: Path) -> None:
    node = write_telemetry(tmp_path / "n0", [100.0] * 3, first_second=-60)
    assert set(values(figures_of([node], training_events())).values()) == {None}


@pytest.mark.parametrize("missing", [EventName.TRAIN_START, EventName.TRAIN_END])
def test_without_a_window_there_is_nothing(missing: EventName, tmp_path: Path) -> None:
    node = write_telemetry(tmp_path / "n0", [100.0] * (SECONDS + 6))
    events = [event for event in training_events() if event.name != missing]
    figures = figures_of([node], events)
    assert set(values(figures).values()) == {None}
    assert "was not reported" in figures["energy"].source


def test_the_window() -> None:
    assert training_window(training_events()) == Window(START_MS, END_MS)
    backwards = [Event(EventName.TRAIN_START, {}, END_MS), Event(EventName.TRAIN_END, {}, START_MS)]
    assert training_window(backwards) == "TRAIN_END does not come after TRAIN_START"
    assert FINISHED["raw_train_time"] == SECONDS


def test_a_wall_clock_that_was_set_during_the_training_marks_its_energy(tmp_path: Path) -> None:
    node = write_telemetry(tmp_path / "n0", [100.0] * (SECONDS + 6))
    figures = telemetry_outcome([node], training_events(raw_train_time=50.0), {}).figures
    assert figures["energy"].caveat == "the wall clock says 10 s of training, FINISHED 50 s"
    assert figures["samples_per_joule"].caveat == figures["energy"].caveat


def test_a_vendors_monitor_that_gave_nothing_marks_whatever_stands_in_its_place(tmp_path: Path) -> None:
    """The energy of the processors is not that of the chips: nobody may take it for theirs unaware."""
    node = write_telemetry(tmp_path / "n0", [40.0] * 15, source="rapl", scope=Scope.PACKAGE)
    broken = SourceInfo(START_MS - 5000, "acme", Scope.ACCELERATOR, 1.0, reason="OSError: no driver")
    with (node / TELEMETRY_FILE).open("a") as file:
        file.write(record_line(broken))
    figures = figures_of([node], training_events())
    assert figures["energy"].value == pytest.approx(400.0)
    assert {figure.caveat for figure in figures.values()} == {"not sampled: n0: acme: OSError: no driver"}
    (node / TELEMETRY_FILE).write_text(record_line(broken))
    energy = figures_of([node], training_events())["energy"]
    assert (energy.value, energy.source) == (None, "acme: OSError: no driver")
    assert energy.caveat.endswith("acme: OSError: no driver"), "it stands below the table on the terminal"
