"""That a clock was set is seen where it moves against the monotonic one, in the stamps of one source."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from utils.telemetry.clock_steps import MOST_STEPS, ClockStep, ClockSteps

UP_MS = 5_000_000  # what the monotonic clock says at the beginning


def steps(
    moved_ms: Callable[[int], float], seconds: Iterable[int] = range(60), *names: str
) -> tuple[ClockStep, ...]:
    """Of a node whose clock has moved by so many ms at a second; all of its sources are read then."""
    clock = ClockSteps()
    for second in seconds:
        for name in names or ("pwr",):
            time_ms = 1000 * second + round(moved_ms(second))
            clock.take(name, time_ms, time_ms, UP_MS + 1000 * second)
    return clock.found()


@pytest.mark.parametrize("moved", [900, -900, 250, 3_600_000])
def test_a_clock_that_is_set(moved: int) -> None:
    (step,) = steps(lambda second: moved if second >= 20 else 0)
    assert (step.moved_ms, step.before_ms, step.after_ms) == (moved, 19_000, 20_000 + moved)
    # just before it was set it told up to a second more than at 19, just behind it up to a second less than at 20
    ends = min(19_000, 19_000 + moved), max(20_000, 20_000 + moved)
    assert step.touches(0, min(ends)) and step.touches(max(ends), 10**9)
    assert not step.touches(0, min(ends) - 1) and not step.touches(max(ends) + 1, 10**9)


def test_each_step_of_several() -> None:
    set_at = {20: 500, 21: 1_000, 40: -300}
    found = steps(lambda second: sum(by for at, by in set_at.items() if second >= at))
    assert [step.moved_ms for step in found] == [500, 1_000, -300]


@pytest.mark.parametrize(
    "moved_ms",
    [
        pytest.param(lambda second: 200 * (second % 2), id="busy between the two clocks"),
        pytest.param(lambda second: 0.5 * second, id="500 ppm"),
        pytest.param(lambda second: 3_000 if second == 20 else 0, id="one stamp came late"),
        pytest.param(lambda second: -3_000 if second == 20 else 0, id="one stamp came early"),
    ],
)
def test_what_is_no_step(moved_ms: Callable[[int], float]) -> None:
    assert steps(moved_ms) == ()


def test_a_last_reading_has_none_behind_it_that_could_bear_it_out() -> None:
    assert [step.moved_ms for step in steps(lambda second: 700 * (second == 59))] == [700]


def test_readings_far_apart_may_drift_by_more() -> None:
    seconds = [0, 1, 1_001, 1_002]
    assert steps(lambda second: 1_100 * (second > 1), seconds) == ()
    assert len(steps(lambda second: 1_300 * (second > 1), seconds)) == 1


def test_sources_are_held_against_themselves_and_who_is_read_more_often_knows_best() -> None:
    """Half a second between two sources is no step; a slow one sees the step of the others too."""
    clock = ClockSteps()
    for second in range(60):
        moved = 900 if second >= 23 else 0
        for name, every, ahead in (("pwr", 1, 0), ("cores", 5, 500)):
            if second % every == 0:
                time_ms = 1000 * second + moved + ahead
                clock.take(name, time_ms, time_ms, UP_MS + 1000 * second)
    assert [(step.before_ms, step.moved_ms) for step in clock.found()] == [(22_000, 900)]


def test_one_that_comes_to_the_same_time_again_was_set_as_often() -> None:
    """Set back by 30 s and again 40 s later: by the clock's own time the second step is where the first one was."""
    found = steps(lambda second: -30_000 * ((second >= 40) + (second >= 80)), range(0, 120, 20), "a", "b")
    assert [(step.before_ms, step.moved_ms) for step in found] == [(20_000, -30_000), (30_000, -30_000)]


def test_no_monotonic_clock_and_none_that_goes_on() -> None:
    """One that stands still, and one that begins anew, is not the clock that it is said to be."""
    clock = ClockSteps()
    for second, monotonic_ms in enumerate([None, None, 1, 1, 1, 1_001, 2_001, 10, 1_010]):
        clock.take("pwr", 1_000 * second, 1_000 * second, monotonic_ms)
    assert clock.found() == ()


def test_a_monitor_that_was_started_again_may_be_on_another_machine() -> None:
    clock = ClockSteps()
    for second in range(10):
        if second == 5:
            clock.begin("redfish")
        clock.take("redfish", 1000 * second, 1000 * second, 1000 * second + (9_000_000 if second >= 5 else 0))
    assert clock.found() == ()


def test_of_very_many_a_bounded_number_is_kept_and_the_last_one_covers_the_rest() -> None:
    found = steps(lambda second: 1_000_000 * (second // 2 % 2), range(4_000))
    assert len(found) <= MOST_STEPS
    assert any(step.touches(3_990_000, 3_991_000) for step in found)


def test_of_a_clock_that_is_set_to_and_fro_each_time_is_known_however_many_sources_there_are() -> None:
    """Steps of several sources that are one take the room of one; what comes when it is full is in the last."""
    names = [f"source{number}" for number in range(6)]
    found = steps(lambda second: 3_000 * (second // 10 % 2), range(905), *names)
    assert len(found) == 90
    assert all(
        any(step.touches(1000 * at - 4_000, 1000 * at + 4_000) for step in found) for at in range(10, 901, 10)
    )
    more = steps(lambda second: 3_000 * (second // 10 % 2), range(2_005), *names)
    assert len(more) == MOST_STEPS
    assert all(more[-1].touches(1000 * at, 1000 * at + 10_000) for at in range(1_010, 2_000, 10))
