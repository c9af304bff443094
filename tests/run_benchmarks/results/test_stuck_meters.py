"""Meters of a machine that repeat what they once read, alone and beside chips whose own power rises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from run_benchmarks.results.phases import PhaseEvents
from run_benchmarks.results.round_telemetry import TelemetryOutcome, telemetry_outcome
from run_benchmarks.results.stuck_meters import standing_still
from run_benchmarks.results.telemetry_file import read_power
from utils.events import Event, EventName
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Sample, Scope, SourceInfo, Window, ticks_of

T0 = 1_700_000_000_000  # the first reading
RANKS, TRAIN = 5, 10  # seconds after it
LONG, SHORT = 150, 80
SCOPES = {"pwr": Scope.MACHINE, "nvml": Scope.ACCELERATOR, "rapl": Scope.PACKAGE}
Watts = Callable[[int], float | None]


def rises(idle: float, training: float) -> Watts:
    return lambda second: idle if second < RANKS + 2 else training


def still(watts: float) -> Watts:
    return lambda second: watts


def judged(
    folder: Path, sources: Mapping[str, Watts], trained_s: int = LONG, seconds: Sequence[int] | None = None
) -> TelemetryOutcome:
    """A node that was read once a second, or at these."""
    lines = [record_line(SourceInfo(T0, name, SCOPES[name], 1.0)) for name in sources]
    for second in seconds or range(TRAIN + trained_s + 3):
        for name, watts in sources.items():
            lines.append(record_line(Sample(T0 + 1000 * second, name, power_w=watts(second))))
    (folder / "h0_noderank0").mkdir()
    (folder / "h0_noderank0" / TELEMETRY_FILE).write_text("".join(lines))
    at = {EventName.INIT_START: RANKS, EventName.INIT_END: TRAIN - 1, EventName.TRAIN_START: TRAIN}
    at |= {EventName.TRAIN_END: TRAIN + trained_s}
    values = {EventName.INIT_START: {"ranks_start_ms": T0 + 1000 * RANKS}}
    events = [Event(name.value, values.get(name, {}), T0 + 1000 * second) for name, second in at.items()]
    phases = PhaseEvents()
    for event in events:
        phases.take(event)
    return telemetry_outcome([folder / "h0_noderank0"], events, {0: phases})


def rise(outcome: TelemetryOutcome) -> tuple[str, float | None, float | None, bool | None] | None:
    """What was compared, both rises, and whether they agree."""
    assert outcome.telemetry is not None
    found = [each for each in outcome.telemetry.reconciliation if each.what.startswith("rise of")]
    return (found[0].what, found[0].first, found[0].second, found[0].agrees) if found else None


def test_a_meter_that_repeats_itself_beside_a_chip_that_rises_is_contradicted(tmp_path: Path) -> None:
    """300 W all the time, of a machine that takes 600 W with a chip of 250 W: more than the chip, as it should."""
    outcome = judged(tmp_path, {"pwr": still(300.0), "nvml": rises(50.0, 250.0)})
    what = "rise of pwr from idle >= nvml"
    assert rise(outcome) == (what, 0, pytest.approx(200), False)
    told = f"h0_noderank0: {what} does not hold: 0 W against 200 W, of which 75% would be allowed"
    assert outcome.figures["energy"].caveat.startswith(told)
    assert outcome.figures["energy_above_idle"].caveat.startswith(told)
    assert [note for note in outcome.notes if note.startswith(told)]


@pytest.mark.parametrize(
    ("training", "agrees"), [(500.0, True), (348.0, True), (346.0, False), (300.0, False), (250.0, False)]
)
def test_a_rise_may_be_short_by_three_quarters_of_that_of_the_parts(
    training: float, agrees: bool, tmp_path: Path
) -> None:
    """That of the chips is 190 W: the meter has to rise by 47.5 W."""
    sources = {"pwr": rises(300.0, training), "nvml": rises(50.0, 200.0), "rapl": rises(20.0, 60.0)}
    what, first, second, is_so = rise(judged(tmp_path, sources)) or ("", None, None, None)
    assert what == "rise of pwr from idle >= nvml + rapl"
    assert (first, second) == (pytest.approx(training - 300), pytest.approx(190))
    assert is_so is agrees


def test_a_host_that_was_busy_while_idle_was_read_contradicts_nothing(tmp_path: Path) -> None:
    """200 W of other work have gone when the chip takes 440 W more."""
    outcome = judged(tmp_path, {"pwr": rises(500.0, 740.0), "nvml": rises(60.0, 500.0)})
    assert rise(outcome) == ("rise of pwr from idle >= nvml", pytest.approx(240), pytest.approx(440), True)


@pytest.mark.parametrize("parts_w", [1e-300, 1e-9, 19.0])
def test_what_parts_hardly_rise_by_is_not_compared(parts_w: float, tmp_path: Path) -> None:
    outcome = judged(tmp_path, {"pwr": rises(128.0, 64.0), "nvml": rises(0.0, parts_w)})
    assert rise(outcome) is None


def test_devices_of_one_meter_that_stand_still_are_one_note(tmp_path: Path) -> None:
    folder = tmp_path / "h0_noderank0"
    folder.mkdir()
    lines = [record_line(SourceInfo(T0, "pwr", Scope.MACHINE, 1.0))]
    for second in range(60):
        samples = [Sample(T0 + 1000 * second, "pwr", f"d{n}", power_w=100.0) for n in range(30)]
        lines += [record_line(tick) for tick in ticks_of(samples)]
    (folder / TELEMETRY_FILE).write_text("".join(lines))
    telemetry = read_power(folder / TELEMETRY_FILE)
    ((_, text),) = standing_still(telemetry, Window(T0 + 5_000, T0 + 59_000))
    assert text.startswith("pwr d0 (and 29 other devices) has told the same value 60 times (100 W)")


def test_a_meter_that_averages_over_a_minute_is_not_contradicted(tmp_path: Path) -> None:
    def averaged(second: int) -> float:
        return 300.0 + 1_000.0 * min(1.0, max(0, second - RANKS - 2) / 60)

    outcome = judged(tmp_path, {"pwr": averaged, "nvml": rises(50.0, 950.0)})
    assert rise(outcome) == (
        "rise of pwr from idle >= nvml",
        pytest.approx(1_000, rel=0.02),
        pytest.approx(900),
        True,
    )
    assert not outcome.notes and not outcome.figures["energy"].caveat


def test_of_parts_that_tell_both_alone_and_not_that_all_is_well(tmp_path: Path) -> None:
    """Packages that were read for the first time when the ranks worked: they rise by nobody knows how much."""
    sources = {
        "pwr": rises(300.0, 600.0),
        "nvml": rises(50.0, 250.0),
        "rapl": lambda second: None if second < TRAIN else 100.0,
    }
    outcome = judged(tmp_path, sources)
    assert rise(outcome) == ("rise of pwr from idle >= nvml", pytest.approx(300), pytest.approx(200), None)
    (tmp_path / "still").mkdir()
    of_stuck = judged(tmp_path / "still", {**sources, "pwr": still(300.0)})
    assert rise(of_stuck) == ("rise of pwr from idle >= nvml", 0, pytest.approx(200), False)


@pytest.mark.parametrize(
    ("sources", "trained_s"),
    [
        ({"pwr": still(300.0), "nvml": rises(50.0, 250.0)}, SHORT),
        ({"pwr": still(300.0), "nvml": rises(250.0, 250.0)}, LONG),
        ({"pwr": still(300.0), "nvml": lambda second: None if second < TRAIN else 250.0}, LONG),
        ({"nvml": rises(50.0, 250.0)}, LONG),
    ],
)
def test_where_there_is_no_rise_to_compare_nothing_is_said(
    sources: Mapping[str, Watts], trained_s: int, tmp_path: Path
) -> None:
    assert rise(judged(tmp_path, sources, trained_s)) is None


def test_a_meter_alone_that_tells_one_single_value_is_a_note_and_no_mark(tmp_path: Path) -> None:
    outcome = judged(tmp_path, {"pwr": still(61.25)}, SHORT)
    assert outcome.notes == [
        "h0_noderank0: pwr has told the same value 91 times (61.25 W), from before the training on: see whether the "
        "meter is read anew"
    ]
    assert outcome.figures["energy"].value and not outcome.figures["energy"].caveat


@pytest.mark.parametrize(
    ("watts", "seconds"),
    [
        pytest.param(lambda second: 300.0 + (second == 40), None, id="one other"),
        pytest.param(still(300.0), range(0, 91, 10), id="10 readings"),
        pytest.param(still(300.0), range(0, 81, 10), id="9 readings"),
        pytest.param(still(300.0), range(29), id="less than 30 s"),
        pytest.param(still(300.0), range(TRAIN + 1, 90), id="in the training alone"),
    ],
)
def test_when_a_single_value_is_told(
    watts: Watts, seconds: Sequence[int] | None, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    notes = judged(tmp_path, {"pwr": watts}, SHORT, seconds).notes
    assert any("told the same value" in note for note in notes) == ("10 readings" in request.node.name)


def test_of_other_parts_that_stand_still_nothing_is_said(tmp_path: Path) -> None:
    """A package at its limit, say; docs/results.md tells that it cannot be told."""
    assert not judged(tmp_path, {"rapl": still(61.25)}, SHORT).notes
