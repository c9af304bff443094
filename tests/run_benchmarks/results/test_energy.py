"""Telemetry: figures over a window, and why there are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from run_benchmarks.results.energy import (
    average_power,
    device_energies,
    energy_and_power,
    energy_over,
    max_power,
)
from utils.telemetry.power_sources import best_power_source, described
from utils.telemetry.records import Measurement, Sample, Scope, SourceInfo, Telemetry, Window

GPU = SourceInfo(0, "gpu", Scope.ACCELERATOR, 1.0, "a card")


def telemetry_of(samples: list[Sample], info: SourceInfo = GPU) -> Telemetry:
    return Telemetry("telemetry.jsonl", (info,), tuple(samples))


def every_second(count: int, sample: Callable[[int], Sample], start_ms: int = 0) -> list[Sample]:
    """`count` samples, a second apart; `sample` gets the number of each."""
    return [replace(sample(number), time_ms=start_ms + number * 1000) for number in range(count)]


def test_energy_is_the_difference_of_the_counter() -> None:
    # 250 W for 10 s; power_w is wrong on purpose: the counter goes first.
    samples = every_second(11, lambda n: Sample(0, "gpu", "0", energy_mj=7e9 + n * 250_000, power_w=1.0))
    energy = energy_over(telemetry_of(samples), Window(0, 10_000), "gpu")
    assert energy.value == pytest.approx(2500)
    assert (energy.coverage, energy.reason) == (1.0, "")
    assert energy.source == "gpu (accelerator: 0): hardware energy counter"


def test_a_window_that_begins_between_two_readings_takes_its_share_of_them() -> None:
    samples = every_second(11, lambda n: Sample(0, "gpu", "0", energy_mj=n * 250_000))
    energy = energy_over(telemetry_of(samples), Window(2_400, 3_600), "gpu")
    assert energy.value == pytest.approx(300)
    assert energy.coverage == 1.0


def test_nothing_is_extrapolated_beyond_the_samples() -> None:
    samples = every_second(5, lambda n: Sample(0, "gpu", "0", energy_mj=n * 100_000), start_ms=6_000)
    energy = energy_over(telemetry_of(samples), Window(0, 16_000), "gpu")
    assert energy.value == pytest.approx(400)
    assert energy.coverage == pytest.approx(0.25)
    assert average_power(telemetry_of(samples), Window(0, 16_000), "gpu").value == pytest.approx(100)


def test_a_counter_counts_on_through_a_hole_but_power_does_not() -> None:
    def samples(sample: Callable[[int], Sample]) -> Telemetry:
        return telemetry_of([s for s in every_second(21, sample) if not 5_000 < s.time_ms < 15_000])

    window = Window(0, 20_000)
    counted = energy_over(samples(lambda n: Sample(0, "gpu", energy_mj=n * 100_000)), window, "gpu")
    assert (counted.value, counted.coverage) == pytest.approx((2000, 1.0))
    integrated = energy_over(samples(lambda n: Sample(0, "gpu", power_w=100)), window, "gpu")
    assert (integrated.value, integrated.coverage) == pytest.approx((1000, 0.5))


def test_a_hole_at_the_windows_edge_is_not_divided() -> None:
    samples = [Sample(t, "gpu", energy_mj=t * 100.0) for t in (0, 20_000, 21_000, 22_000)]
    energy = energy_over(telemetry_of(samples), Window(10_000, 22_000), "gpu")
    assert (energy.value, energy.coverage) == pytest.approx((200, 2 / 12))


@pytest.mark.parametrize(
    ("interval_s", "times_s", "coverage"),
    [
        (3600, (-6, 92), 0.0),  # both outside: no part of what lies between is known to be the training's
        (3600, (-3000, 45, 3000), 0.0),
        (60, (-30, 30, 90), 1.0),
        (60, (-10, 50, 110), 1.0),
        (60, (-200, 90), 0.0),
        (5, (-5, 0, 5, 10, 20, *range(25, 95, 5)), 1.0),  # one is missing, and the next comes in time
        (5, (-5, 0, 5, 10, 25, *range(30, 95, 5)), 75 / 90),
        (1, (*range(31), *range(35, 92)), 1.0),
        (1, (*range(31), *range(36, 92)), 84 / 90),
        (0.1, [t / 10 for t in range(-5, 905) if not 300 < t < 360], 84 / 90),
    ],
)
@pytest.mark.parametrize("value", ["power_w", "energy_mj"])
def test_what_lies_between_readings_is_known_where_interval_and_window_allow(
    interval_s: float, times_s: Sequence[float], coverage: float, value: str
) -> None:
    window = Window(0, 90_000)
    readings = [Sample(int(at * 1000), "gpu", **{value: 1e9 + at * 1e5}) for at in times_s]
    telemetry = telemetry_of(readings, replace(GPU, interval_s=interval_s))
    if value == "energy_mj" and coverage > 0.5:
        coverage = 1.0  # a counter counts on
    energy = energy_over(telemetry, window, "gpu")
    assert energy.coverage == pytest.approx(coverage)
    assert (energy.value is None) == (coverage == 0)
    if coverage == 0:
        assert "near enough to each other" in energy.reason


@pytest.mark.parametrize(("begin_ms", "watts"), [(-6_950, 900), (-6_400, 900), (-6_300, None)])
def test_an_idle_time_of_about_an_interval_is_known_though_a_reading_came_late(
    begin_ms: int, watts: float | None
) -> None:
    samples = [Sample(at, "gpu", power_w=900.0) for at in (-7_000, -1_900, 3_000)]
    telemetry = telemetry_of(samples, replace(GPU, interval_s=5))
    assert average_power(telemetry, Window(begin_ms, -1_900), "gpu").value == watts


def test_an_evaluation_between_two_readings_of_a_slow_meter_is_not_known() -> None:
    samples = [Sample(at, "gpu", power_w=100.0 + at) for at in range(0, 30_000, 5_000)]
    bmc = telemetry_of(samples, replace(GPU, interval_s=5))
    assert energy_over(bmc, Window(11_000, 12_000), "gpu").value is None
    several = tuple(Window(start, start + 1_000) for start in range(1_000, 25_000, 4_000))
    energy, _ = energy_and_power(bmc, several, "gpu", device_energies(bmc, several, "gpu"))
    assert energy.value is None, "of many together it tells no more: it has the time between them in it"


def test_a_counter_that_wraps_is_unwrapped() -> None:
    wraps_at = 262_144_000.0  # mJ, RAPL's usual range
    samples = every_second(
        11,
        lambda n: Sample(
            0, "gpu", energy_mj=(wraps_at - 320_000 + n * 90_000) % wraps_at, energy_range_mj=wraps_at
        ),
    )
    assert energy_over(telemetry_of(samples), Window(0, 10_000), "gpu").value == pytest.approx(900)


def test_a_counter_that_may_have_wrapped_twice_is_not_trusted_over_the_hole() -> None:
    samples = [
        Sample(t, "gpu", energy_mj=t * 100.0, energy_range_mj=65_000_000) for t in (0, 1_000, 90_000, 91_000)
    ]
    energy = energy_over(telemetry_of(samples), Window(0, 91_000), "gpu")
    assert (energy.value, energy.coverage) == pytest.approx((200, 2 / 91))


def test_a_frozen_counter_is_not_used_and_the_reader_is_told() -> None:
    samples = every_second(31, lambda n: Sample(0, "gpu", "3", energy_mj=min(n, 9) * 100_000, power_w=100))
    energy = energy_over(telemetry_of(samples), Window(0, 30_000), "gpu")
    assert energy.value == pytest.approx(3000)
    assert energy.source == "gpu (accelerator: 3): power integrated by the trapezoid rule"
    assert energy.reason.startswith("gpu 3: the energy counter was not used: it stood still at 900000 mJ")


def test_a_frozen_counter_without_power_is_not_measured() -> None:
    samples = every_second(31, lambda n: Sample(0, "gpu", "3", energy_mj=5))
    energy = energy_over(telemetry_of(samples), Window(0, 30_000), "gpu")
    assert energy.value is None and "stood still" in energy.reason


def test_a_counter_that_is_read_twice_before_it_moves_is_not_frozen() -> None:
    samples = every_second(21, lambda n: Sample(0, "gpu", energy_mj=(n // 4) * 400_000), start_ms=-8_000)
    energy = energy_over(telemetry_of(samples), Window(0, 8_000), "gpu")
    assert energy.value == pytest.approx(800) and not energy.reason


RESET = "was reset or misread 1 time, first from 55000 to 1000 mJ"


def after_a_reset(number: int) -> Sample:
    """A driver that is reloaded starts its counter again at 0."""
    return Sample(0, "gpu", energy_mj=(number - 5 if number > 5 else number + 50) * 1000)


def test_a_counter_that_is_reset_has_a_gap_there_and_the_reader_is_told() -> None:
    energy = energy_over(telemetry_of(every_second(11, after_a_reset)), Window(0, 10_000), "gpu")
    assert (energy.value, energy.coverage) == pytest.approx((9, 0.9))
    assert energy.reason.endswith(f"some of the energy counter was not used: it {RESET}")


def test_of_a_counter_that_was_reset_power_fills_a_short_window() -> None:
    samples = every_second(11, lambda n: replace(after_a_reset(n), power_w=1.5))
    energy = energy_over(telemetry_of(samples), Window(0, 10_000), "gpu")
    assert (energy.value, energy.coverage) == pytest.approx((15, 1.0))
    assert energy.reason.endswith(f"the energy counter was not used: it {RESET}")


def test_of_a_counter_that_was_reset_power_fills_a_long_window_too() -> None:
    samples = every_second(201, lambda n: replace(after_a_reset(n), power_w=1.5))
    energy = energy_over(telemetry_of(samples), Window(0, 200_000), "gpu")
    assert (energy.value, energy.coverage) == pytest.approx((300, 1.0))


@pytest.mark.parametrize("misread", [0, 3_050_000, 2_999_999], ids=["0", "50 kJ more", "1 mJ back"])
def test_one_reading_that_its_neighbours_contradict_is_left_out(misread: float) -> None:
    """A chip may take 30 kW: the way up to a reading of 50 kJ more would be a growth like another."""

    def sample(number: int) -> Sample:
        return Sample(0, "gpu", energy_mj=misread if number == 11 else 300_000 * number)

    energy = energy_over(telemetry_of(every_second(201, sample)), Window(0, 200_000), "gpu")
    assert (energy.value, energy.coverage, energy.reason) == (pytest.approx(60_000), 1.0, "")


def short_windows(length_ms: int) -> list[Window]:
    return [Window(start, start + length_ms) for start in range(1_025, 100_000, 4_100)]


@pytest.mark.parametrize("updated_ms", [100, 500, 1_000, 5_000, 10_000])
@pytest.mark.parametrize("has_power", [True, False])
def test_short_windows_are_as_right_as_long_ones_however_seldom_a_counter_is_updated(
    updated_ms: int, has_power: bool
) -> None:
    """Of many short windows some hold an update, with the growth of a time that is longer, and the others none."""
    more = {"power_w": 300.0} if has_power else {}
    samples = [
        Sample(t, "gpu", energy_mj=300 * (t - t % updated_ms), **more) for t in range(-20_000, 130_000, 1_000)
    ]
    windows = short_windows(2_000)
    telemetry = telemetry_of(samples)
    energy, power = energy_and_power(telemetry, windows, "gpu", device_energies(telemetry, windows, "gpu"))
    if updated_ms > 3_000 and not has_power:
        assert energy.value is None
    else:
        assert (power.value, energy.coverage) == (pytest.approx(300), pytest.approx(1))


@pytest.mark.parametrize("stuck_at_s", [-30, 50])
def test_a_counter_that_stands_still_is_none_in_short_windows_either(stuck_at_s: int) -> None:
    def stuck(second: int) -> Sample:
        return Sample(second * 1_000, "gpu", energy_mj=300_000 * min(second, stuck_at_s) + 1e7, power_w=300)

    for windows in ([Window(0, 100_000)], short_windows(1_100), short_windows(2_000)):
        telemetry = telemetry_of([stuck(second) for second in range(-20, 121)])
        (energy,) = device_energies(telemetry, windows, "gpu").values()
        assert energy.value == pytest.approx(0.3 * energy.covered_ms)
        assert energy.covered_ms == pytest.approx(sum(each.seconds for each in windows) * 1000)
        alone = telemetry_of([replace(stuck(second), power_w=None) for second in range(-20, 121)])
        (energy,) = device_energies(alone, windows, "gpu").values()
        assert (energy.value or 0) == pytest.approx(0.3 * energy.covered_ms)


@pytest.mark.parametrize("interval_s", [1, 10, 30, 60])
def test_a_reset_is_no_wrap_however_far_apart_the_readings_are(interval_s: int) -> None:
    """262 kJ in twice the interval could be what a package draws, in one interval it could not."""
    info = replace(GPU, source="rapl", scope=Scope.PACKAGE, interval_s=interval_s)
    samples = [
        Sample(
            t * 1000,
            "rapl",
            energy_mj=200_000.0 * (t if t < 210 else t - 209),
            energy_range_mj=262_143_328.85,
        )
        for t in range(0, 601, interval_s)
    ]
    energy = energy_over(telemetry_of(samples, info), Window(0, 600_000), "rapl")
    assert energy.value == pytest.approx(200 * 600 * energy.coverage)
    assert energy.coverage == pytest.approx(1 - interval_s / 600)
    assert "misread 1 time" in energy.reason and energy.doubt.endswith(energy.reason.removeprefix("rapl: "))


@pytest.mark.parametrize("interval_s", [1, 5, 10, 60])
def test_a_misread_beside_the_window_is_left_out_like_one_in_it(interval_s: int) -> None:
    samples = [
        Sample(t * 1000, "gpu", energy_mj=300_000.0 * t + 50_000_000 * (t == 7 * interval_s))
        for t in range(0, 20 * interval_s, interval_s)
    ]
    info = replace(GPU, interval_s=interval_s)
    energy = energy_over(telemetry_of(samples, info), Window(2_000 * interval_s, 6_500 * interval_s), "gpu")
    assert energy.value == pytest.approx(300 * 4.5 * interval_s * energy.coverage)


def test_readings_that_contradict_each_other_again_and_again_are_no_misread_ones() -> None:
    """A clock that is set back puts ten seconds' readings between those of the ten seconds before."""
    samples = [
        Sample((t if t < 50 else t - 10) * 1000 + 300 * (t >= 50), "gpu", energy_mj=300_000.0 * t)
        for t in range(110)
    ]
    energy = energy_over(telemetry_of(samples), Window(0, 99_000), "gpu")
    assert energy.value is None and energy.reason.startswith(
        "gpu: the energy counter was not used: it was reset"
    )


def test_power_stands_in_for_a_counter_that_answers_in_a_part_of_the_time() -> None:
    samples = every_second(
        201, lambda n: Sample(0, "gpu", power_w=300, energy_mj=300_000 * n if n > 120 else None)
    )
    energy = energy_over(telemetry_of(samples), Window(0, 200_000), "gpu")
    assert (energy.value, energy.coverage) == (pytest.approx(60_000), 1.0)
    assert energy.reason.endswith("not used: power was read in more of the time") and not energy.doubt


def test_power_of_a_package_does_not_stand_in_for_the_counter_that_it_is_made_of() -> None:
    """It stands still for 60 s, in which it made 0 W of it."""
    rapl = replace(GPU, source="rapl", scope=Scope.PACKAGE)
    samples = every_second(
        121,
        lambda n: Sample(
            0,
            "rapl",
            power_w=0.0 if 20 < n <= 80 else 100.0,
            energy_mj=1e5 * (n if n <= 20 else max(20, n - 60)),
        ),
    )
    energy = energy_over(telemetry_of(samples, rapl), Window(0, 120_000), "rapl")
    assert energy.value == pytest.approx(100 * 120 * energy.coverage) and energy.coverage == 59 / 120
    assert energy.doubt.endswith("it stood still at 2000000 mJ for 60.0 s")
    silent = telemetry_of([replace(each, energy_mj=5.0) for each in samples], rapl)
    assert energy_over(silent, Window(0, 120_000), "rapl").value is None


@pytest.mark.parametrize("has_power", [True, False])
@pytest.mark.parametrize("edge_ms", [0, 100_000])
def test_two_misread_readings_across_the_windows_edge_are_a_fault_in_it(
    edge_ms: int, has_power: bool
) -> None:
    def sample(at_ms: int) -> Sample:
        is_wrong = edge_ms - 1_000 < at_ms < edge_ms + 1_000
        more = {"power_w": 300.0} if has_power else {}
        return Sample(at_ms, "gpu", energy_mj=300.0 * (at_ms + 1e6) + 20_000_000 * is_wrong, **more)

    telemetry = telemetry_of([sample(at_ms) for at_ms in range(-10_500, 110_500, 1_000)])
    energy = energy_over(telemetry, Window(0, 100_000), "gpu")
    if has_power:
        assert energy.value == pytest.approx(30_000) and not energy.doubt
    else:
        assert "misread" in energy.doubt


def test_some_leaps_in_a_long_time_leave_the_rest_of_a_counter() -> None:
    zeros = {500, 501, 1_500, 1_501, 2_500, 2_501}
    samples = every_second(
        3_601, lambda n: Sample(0, "gpu", energy_mj=0.0 if n in zeros else 3e5 * (n + 1e4))
    )
    energy = energy_over(telemetry_of(samples), Window(0, 3_600_000), "gpu")
    assert energy.value == pytest.approx(300 * 3600 * energy.coverage) and energy.coverage > 0.99
    assert "misread 6 times" in energy.doubt


@pytest.mark.parametrize("still_s", [0, 4, 7])
def test_the_largest_power_of_a_package_is_by_its_counter_too(still_s: int) -> None:
    """It catches up what it did not count, or is misread once, and its power, which is made of it, shows it at once."""
    rapl = replace(GPU, source="rapl", scope=Scope.PACKAGE)

    def sample(second: int) -> Sample:
        is_still = 20 < second < 20 + still_s
        misread = 1_500_000 if second == 60 else 0
        power = 180.0 * still_s if second == 20 + still_s else 1680.0 if misread else 180.0
        return Sample(
            0,
            "rapl",
            energy_mj=180_000 * (20 if is_still else second) + misread,
            power_w=0 if is_still else power,
        )

    largest = max_power(telemetry_of(every_second(101, sample), rapl), Window(0, 100_000), "rapl")
    assert largest.value == pytest.approx(180)
    assert (largest.coverage < 0.99) == (still_s == 7)


def test_no_power_of_a_package_is_more_than_one_can_draw() -> None:
    """Between two readings a counter may grow by more: by what came late."""
    rapl = replace(GPU, source="rapl", scope=Scope.PACKAGE)
    samples = every_second(
        101, lambda n: Sample(0, "rapl", energy_mj=180_000 * n + 2_500_000 * (n in (40, 41)))
    )
    assert max_power(telemetry_of(samples, rapl), Window(0, 100_000), "rapl").value == pytest.approx(180)


@pytest.mark.parametrize("updated_s", [2, 3, 5])
def test_the_first_reading_of_a_counter_that_is_updated_seldom_is_no_update(updated_s: int) -> None:
    """It may be as old as that, and its growth would be that of a second."""
    for first in range(updated_s):
        samples = [
            Sample(t * 1000, "gpu", energy_mj=100_000.0 * (t - t % updated_s))
            for t in range(first, first + 30)
        ]
        power = average_power(telemetry_of(samples), Window(first * 1000, first * 1000 + 12_000), "gpu")
        assert power.value == pytest.approx(100)


def test_of_a_counter_that_may_have_wrapped_unseen_the_reason_is_that_of_its_monitor() -> None:
    rapl = replace(GPU, source="rapl", scope=Scope.PACKAGE, interval_s=60)
    samples = [
        Sample(
            t * 1000,
            "rapl",
            energy_mj=t * 1e5,
            energy_range_mj=65_532_610.0,
            error="it may have wrapped unseen",
        )
        for t in range(-60, 361, 60)
    ]
    energy = energy_over(telemetry_of(samples, rapl), Window(0, 300_000), "rapl")
    assert energy.value is None and energy.reason.endswith("not used: it may have wrapped unseen")


def test_of_two_readings_of_a_counter_at_one_moment_the_last_counts() -> None:
    samples = [Sample(t * 1000, "gpu", energy_mj=3e5 * t + late) for t in range(101) for late in (-1e5, 0)]
    assert energy_over(telemetry_of(samples), Window(0, 100_000), "gpu").value == pytest.approx(30_000)


def test_what_two_misread_readings_leave_of_a_counter_is_doubted() -> None:
    samples = every_second(
        201, lambda n: Sample(0, "gpu", energy_mj=0 if n in (90, 91) else 300_000 * (n + 1))
    )
    energy = energy_over(telemetry_of(samples), Window(0, 200_000), "gpu")
    assert energy.value == pytest.approx(300 * 200 * energy.coverage) and energy.coverage == 197 / 200
    assert energy.doubt == (
        "gpu: some of the energy counter was not used: it was reset or misread 1 time, first from 27000000 to 0 mJ"
    )


@pytest.mark.parametrize("last", [0, 2_000_000_000], ids=["reset", "a leap"])
def test_what_no_package_can_draw_is_neither_a_wrap_nor_a_growth(last: float) -> None:
    """RAPL's usual range is 262 kJ: in a second that would be 262 kW."""
    rapl = replace(GPU, source="rapl", scope=Scope.PACKAGE)
    readings = [59_600_000, 59_800_000, 60_000_000, last, last + 200_000, last + 400_000]
    samples = every_second(
        6, lambda n: Sample(0, "rapl", energy_mj=readings[n], energy_range_mj=262_143_328.85)
    )
    energy = energy_over(telemetry_of(samples, rapl), Window(0, 5_000), "rapl")
    assert (energy.value, energy.coverage) == pytest.approx((800, 0.8))


def test_two_readings_a_moment_apart_may_hold_what_came_late() -> None:
    """The last tick may follow the one before at once, and a counter is updated ten times a second."""
    samples = [Sample(t, "gpu", energy_mj=mj) for t, mj in ((0, 0.0), (1_000, 500_000), (1_001, 570_000))]
    energy = energy_over(telemetry_of(samples), Window(0, 1_001), "gpu")
    assert (energy.value, energy.coverage) == pytest.approx((570, 1.0)) and not energy.reason


def test_a_counter_that_never_moves_is_not_used() -> None:
    samples = every_second(4, lambda n: Sample(0, "gpu", energy_mj=5, power_w=300))
    energy = energy_over(telemetry_of(samples), Window(0, 3_000), "gpu")
    assert energy.value == pytest.approx(900) and energy.reason.endswith("it stood still")


def test_power_is_integrated_by_the_trapezoid_rule() -> None:
    samples = every_second(5, lambda n: Sample(0, "gpu", power_w=n * 100))  # 0, 100, ... 400 W
    energy = energy_over(telemetry_of(samples), Window(500, 3_500), "gpu")
    assert energy.value == pytest.approx(600)  # mean of 50 and 350 W over 3 s
    assert average_power(telemetry_of(samples), Window(500, 3_500), "gpu").value == pytest.approx(200)


def test_power_below_0_is_no_reading() -> None:
    samples = every_second(11, lambda n: Sample(0, "gpu", power_w=-1 if n == 5 else 100))
    assert energy_over(telemetry_of(samples), Window(0, 10_000), "gpu").value == pytest.approx(1000)


def test_devices_are_added_and_the_worst_covered_counts() -> None:
    whole = every_second(11, lambda n: Sample(0, "gpu", "0", energy_mj=n * 100_000, power_w=100))
    half = every_second(6, lambda n: Sample(0, "gpu", "1", energy_mj=n * 300_000, power_w=300))
    telemetry, window = telemetry_of(whole + half), Window(0, 10_000)
    energy = energy_over(telemetry, window, "gpu")
    assert (energy.value, energy.coverage) == pytest.approx((1000 + 1500, 0.5))
    assert average_power(telemetry, window, "gpu").value == pytest.approx(400)
    assert max_power(telemetry, window, "gpu").value == pytest.approx(400)


def test_the_largest_power_is_of_a_moment_when_every_device_was_read() -> None:
    samples = every_second(11, lambda n: Sample(0, "gpu", "0", power_w=900 if n == 8 else 100))
    samples += every_second(6, lambda n: Sample(0, "gpu", "1", power_w=300))
    assert max_power(telemetry_of(samples), Window(0, 10_000), "gpu").value == 400


def test_a_device_that_never_answers_makes_the_sum_null_with_its_error() -> None:
    samples = every_second(11, lambda n: Sample(0, "gpu", "0", energy_mj=n * 100_000))
    samples += every_second(11, lambda n: Sample(0, "gpu", "1", error="GPU is lost"))
    energy = energy_over(telemetry_of(samples), Window(0, 10_000), "gpu")
    assert (energy.value, energy.coverage) == (None, 0.0)
    assert "gpu 1: GPU is lost" in energy.reason


def test_a_device_whose_power_another_one_carries_is_counted_with_that_one() -> None:
    window = Window(0, 10_000)
    first = every_second(11, lambda n: Sample(0, "gpu", "0", power_w=300))
    second = every_second(11, lambda n: Sample(0, "gpu", "1", power_on="0"))
    board = telemetry_of(first + second)
    assert (energy_over(board, window, "gpu").value, max_power(board, window, "gpu").value) == (3000, 300)
    missing = telemetry_of(first + second + every_second(11, lambda n: Sample(0, "gpu", "2")))
    assert (energy_over(missing, window, "gpu").value, max_power(missing, window, "gpu").value) == (
        None,
        None,
    )
    nobody = telemetry_of(first + [replace(sample, power_on="7") for sample in second])
    assert energy_over(nobody, window, "gpu").value is None
    itself = telemetry_of(first + [replace(sample, power_w=40) for sample in second])
    assert energy_over(itself, window, "gpu").value == 3400


def test_a_source_names_its_devices_in_the_order_of_their_numbers() -> None:
    samples = [Sample(0, "gpu", str(number)) for number in (10, 2, 0)]
    assert described(telemetry_of(samples), "gpu") == "gpu (accelerator: 0, 2, 10)"
    assert described(telemetry_of([Sample(0, "gpu")]), "gpu") == "gpu (accelerator)"


def test_two_samples_at_one_moment_are_one() -> None:
    samples = every_second(11, lambda n: Sample(0, "gpu", "0", power_w=100))
    twice = telemetry_of([*samples, replace(samples[-1], power_w=120)])
    assert max_power(twice, Window(0, 10_000), "gpu").value == 120
    assert energy_over(twice, Window(0, 10_000), "gpu").value == pytest.approx(1000)


def test_largest_values_come_from_inside_the_window_only() -> None:
    samples = every_second(11, lambda n: Sample(0, "gpu", "0", power_w=100 + n))
    telemetry, window = telemetry_of(samples), Window(2_000, 6_000)
    assert max_power(telemetry, window, "gpu").value == 106
    assert max_power(telemetry, window, "gpu").coverage == 1.0


FIGURES = [energy_over, average_power, max_power]


@pytest.mark.parametrize("figure", FIGURES)
def test_what_was_not_measured_is_null_with_the_reason(
    figure: Callable[[Telemetry, Window, str], Measurement],
) -> None:
    window = Window(0, 10_000)
    silent = replace(GPU, source="pwr", scope=Scope.MACHINE, reason="no power meter")
    telemetry = Telemetry("here.jsonl", (silent, GPU), (Sample(3_000, "gpu", "0"),))
    assert figure(telemetry, window, "pwr") == Measurement(None, "pwr (machine)", 0.0, "no power meter")
    assert figure(telemetry, window, "gpu").value is None and figure(telemetry, window, "gpu").reason
    assert "here.jsonl holds no samples of tpu" in figure(telemetry, window, "tpu").reason


def test_the_source_nearest_to_the_whole_machine_is_chosen() -> None:
    rapl = replace(GPU, source="rapl", scope=Scope.PACKAGE)
    meter = replace(GPU, source="pwr", scope=Scope.MACHINE)
    assert best_power_source(Telemetry("t", (rapl, GPU, meter))) == "pwr"
    assert best_power_source(Telemetry("t", (rapl, GPU, replace(meter, reason="none")))) == "gpu"
    assert best_power_source(Telemetry("t", (replace(rapl, reason="none"),))) is None
    assert best_power_source(Telemetry("t", (meter, rapl, replace(meter, reason="it is gone")))) == "rapl"
