"""By how much a figure may be off because the load changes at its window's ends, between two readings."""

from __future__ import annotations

import pytest

from run_benchmarks.results.energy import average_power, device_energies, energy_and_power, energy_over
from utils.telemetry.records import Measurement, Sample, Scope, SourceInfo, Telemetry, Window

COUNTER = SourceInfo(0, "gpu", Scope.ACCELERATOR, 1.0)
METER = SourceInfo(0, "pwr", Scope.MACHINE, 5.0)


def watts_at(ms: float, steps: dict[int, float]) -> float:
    """The power that the latest of `steps` (ms -> W) has brought."""
    return [watts for start, watts in steps.items() if start <= ms][-1]


def joules_until(ms: int, steps: dict[int, float]) -> float:
    ends = [*list(steps)[1:], ms]
    return sum(
        w * max(0, min(end, ms) - start) / 1000 for (start, w), end in zip(steps.items(), ends, strict=True)
    )


def counted(steps: dict[int, float], first_ms: int, last_ms: int) -> Telemetry:
    """A counter that is read once a second."""
    times = range(first_ms, last_ms + 1, 1000)
    samples = (Sample(at, "gpu", "0", energy_mj=1e9 + 1000 * joules_until(at, steps)) for at in times)
    return Telemetry("telemetry.jsonl", (COUNTER,), tuple(samples))


def metered(steps: dict[int, float], first_ms: int, last_ms: int) -> Telemetry:
    """A meter that is read once in five seconds."""
    times = range(first_ms, last_ms + 1, 5000)
    samples = (Sample(at, "pwr", power_w=watts_at(at, steps)) for at in times)
    return Telemetry("telemetry.jsonl", (METER,), tuple(samples))


SHORT = {0: 50.0, 10_000: 450.0, 15_000: 50.0}


@pytest.mark.parametrize("first_ms", range(100, 1000, 100))
def test_a_short_training_is_off_by_as_much_as_is_said(first_ms: int) -> None:
    """The load changes at the training's ends alone: what is said is what it is off by, at both ends together."""
    window, truth = Window(10_000, 15_000), 450 * 5
    energy = energy_over(counted(SHORT, first_ms, 30_000), window, "gpu")
    assert energy.value is not None
    inside, outside = 1 - first_ms / 1000, first_ms / 1000
    at_an_end = 400 * inside * outside
    assert energy.unsure == pytest.approx(2 * at_an_end, abs=0.1)
    assert abs(energy.value - truth) <= energy.unsure + 0.1
    assert ("may be off by some" in energy.doubt_at_ends) is (2 * at_an_end > 0.02 * energy.value)


@pytest.mark.parametrize(
    ("count", "apart_s", "evaluation_ms"), [(20, 10, 1000), (20, 10, 600), (30, 5, 1000)]
)
def test_what_many_evaluations_take_from_the_training_between_them_is_said(
    count: int, apart_s: int, evaluation_ms: int
) -> None:
    """500 W while training, 100 W in each evaluation: what lies beyond an edge is itself a part of both."""
    starts = [10_000 + number * apart_s * 1000 + 237 * number % 1000 for number in range(count)]
    steps = {0: 500.0}
    for start in starts:
        steps |= {start: 100.0, start + evaluation_ms: 500.0}
    ends = [start + evaluation_ms for start in starts]
    windows = [Window(end, start) for end, start in zip(ends, starts[1:], strict=False)]
    telemetry = counted(steps, 500, starts[-1] + 20_500)
    power = energy_and_power(telemetry, windows, "gpu", device_energies(telemetry, windows, "gpu"))[1]
    assert power.value is not None
    assert power.unsure == pytest.approx(500 - power.value, rel=0.05)
    assert power.doubt_at_ends


def test_a_long_training_is_sure() -> None:
    steps = {0: 50.0, 10_000: 450.0, 130_000: 50.0}
    energy = energy_over(counted(steps, 500, 140_000), Window(10_000, 130_000), "gpu")
    assert energy.unsure == pytest.approx(200, abs=0.1)  # of 54 kJ
    assert not energy.doubt_at_ends


def test_where_readings_fall_on_the_ends_nothing_is_shared_out() -> None:
    energy = energy_over(counted(SHORT, 0, 30_000), Window(10_000, 15_000), "gpu")
    assert (energy.value, energy.unsure, energy.doubt_at_ends) == (pytest.approx(2250), 0.0, "")


def test_an_evaluation_without_a_whole_growth_in_it_is_told_by_what_lies_around_it() -> None:
    """500 W while training, 100 W in an evaluation of a second, which two growths share with what is beside it."""
    steps = {0: 500.0, 10_000: 100.0, 11_000: 500.0}
    power = average_power(counted(steps, 500, 20_500), Window(10_000, 11_000), "gpu")
    assert power.value == pytest.approx(300)
    assert power.unsure == pytest.approx(200)
    assert power.doubt_at_ends.endswith("it may be off by some 67 %")


def test_an_idle_time_is_sure_where_the_load_comes_after_the_growth_that_its_end_cuts() -> None:
    steps = {0: 50.0, 7_500: 450.0}
    idle = average_power(counted(steps, 200, 20_200), Window(200, 5_000), "gpu")
    assert idle.value == pytest.approx(50)
    assert idle.unsure == pytest.approx(0, abs=0.01)


def test_idle_power_by_a_meter_that_is_read_again_when_the_load_is_there_is_doubted() -> None:
    """The reading before the ranks' start is joined by a line with the next, which has the load in it."""
    steps = {0: 200.0, 5_950: 600.0}
    idle = average_power(metered(steps, 1_000, 31_000), Window(1_000, 5_900), "pwr")
    assert idle.value == pytest.approx(396)
    assert idle.unsure == pytest.approx(196)
    assert "some 49 %" in idle.doubt_at_ends


def test_a_constant_load_is_sure_however_seldom_it_is_read() -> None:
    for telemetry, source in (
        (metered({0: 300.0}, 1_000, 61_000), "pwr"),
        (counted({0: 300.0}, 300, 9_300), "gpu"),
    ):
        energy = energy_over(telemetry, Window(2_500, 8_000), source)
        assert energy.value == pytest.approx(1650)
        assert energy.unsure == pytest.approx(0, abs=0.01)


def test_what_several_devices_and_windows_are_off_by_is_added() -> None:
    one = counted(SHORT, 500, 30_000)
    two = tuple(Sample(each.time_ms, "gpu", "1", energy_mj=each.energy_mj) for each in one.samples)
    both = Telemetry("telemetry.jsonl", (COUNTER,), (*one.samples, *two))
    window = Window(10_000, 15_000)
    assert energy_over(both, window, "gpu").unsure == pytest.approx(
        2 * energy_over(one, window, "gpu").unsure
    )
    windows = (Window(9_000, 10_000), Window(10_000, 15_000))
    parts = sum(energy_over(one, each, "gpu").unsure for each in windows)
    energies = device_energies(one, windows, "gpu")
    assert energy_and_power(one, windows, "gpu", energies)[0].unsure == pytest.approx(parts)


@pytest.mark.parametrize(
    ("value", "unsure", "said"),
    [(100.0, 2.0, ""), (100.0, 2.5, "some 2.5 %"), (-100.0, 30.0, "some 30 %"), (10.0, 30.0, "as much as it is"),
     (0.0, 30.0, "as much as it is"), (0.0, 0.0, ""), (None, 0.0, "")],
)  # fmt: skip
def test_what_is_said(value: float | None, unsure: float, said: str) -> None:
    doubt = Measurement(value, "pwr", 1.0, unsure=unsure).doubt_at_ends
    assert doubt.rpartition("be off by ")[2] == said


def test_a_device_that_was_lost_before_the_window_is_named_by_its_error() -> None:
    """Its counter had grown before."""
    lost = "GPU is lost"
    samples = [Sample(at, "gpu", "0", energy_mj=1e9 + at * 300) for at in range(0, 9_000, 1000)]
    samples += [Sample(at, "gpu", "0", error=lost) for at in range(9_000, 40_000, 1000)]
    telemetry = Telemetry("telemetry.jsonl", (COUNTER,), tuple(samples))
    energy = energy_over(telemetry, Window(10_000, 30_000), "gpu")
    assert energy.value is None
    assert lost in energy.reason
