"""After what silence a training is taken for hung."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from run_benchmarks import pace
from run_benchmarks.pace import OF_MEDIAN, Pace
from run_benchmarks.training_state import TrainingState
from utils.events import Event, EventName

TRAIN_START, STEP_END, EVALUATE = EventName.TRAIN_START, EventName.STEP_END, EventName.EVALUATE
Gaps = Sequence[tuple[str, float]]
INITIAL: Gaps = [(EventName.INIT_START, 0.0), (EventName.HOOKS, 4000.0), (EventName.INIT_EVALUATION, 5.0)]


def limit(*gaps: tuple[str, float], setting: float | None = None, saves: bool = False) -> float | None:
    """The limit after events with such gaps in seconds: by our clock, and by rank 0's in a log that is read later."""
    live, later = Pace(saves), Pace(saves)
    now = 1000.0
    for name, gap in gaps:
        now += gap
        live.note(Event(name), now)
        later.note(Event(name, time_ms=int(now * 1000)), 5.0)
    assert live.limit_s(setting) == later.limit_s(setting)
    return live.limit_s(setting)


STEPS: Gaps = [(TRAIN_START, 2.0), *[(STEP_END, 1.0)] * 5]


def test_before_there_is_a_pace_only_a_number_counts() -> None:
    assert limit() is None
    assert limit(*INITIAL, (TRAIN_START, 2.0)) is None
    assert limit(*INITIAL, *STEPS[:-1]) is None
    assert limit(*INITIAL, setting=7.0) == 7.0


def test_of_a_search_an_epoch_is_as_long_a_gap_as_it_took() -> None:
    """Many workers report in turn: the gaps between their events say little of how long each of them is silent."""
    pace = Pace()
    for now in range(4):
        pace.note(Event("EPOCH", {"seconds": 400.0}), 1000.0 + now)
    assert pace.limit_s(None) is None
    pace.note(Event("EPOCH", {"seconds": 100.0}), 1005.0)
    assert pace.limit_s(None) == OF_MEDIAN * 400.0
    assert pace.limit_s(7.0) == 7.0


def test_a_silence_is_usual_that_is_no_longer_than_the_longest_before() -> None:
    pace = Pace()
    assert not pace.is_usual(0.1)
    for now in (0.0, 1.0, 8.0, 9.0):
        pace.note(Event(STEP_END), now)
    assert pace.is_usual(7.0) and not pace.is_usual(7.1)


@pytest.mark.parametrize("is_read_first", [False, True])
def test_a_pause_is_no_gap_whoever_hears_of_it_first(is_read_first: bool) -> None:
    """The first report behind it may be read before anybody knows that there was one."""
    pace = Pace()
    for now in range(10):
        pace.note(Event(STEP_END, time_ms=1 + 1000 * now), float(now))
    before = pace.limit_s(None)
    pauses = [lambda: pace.note(Event(STEP_END, time_ms=5_000_000), 5000.0), lambda: pace.pause(9.5, 5000.0)]
    for each in pauses if is_read_first else reversed(pauses):
        each()
    pace.note(Event(STEP_END, time_ms=5_001_000), 5001.0)
    assert pace.limit_s(None) == before
    assert not pace.is_usual(1.1)


def test_an_epoch_that_a_pause_made_longer_says_nothing_of_the_pace() -> None:
    pace = Pace()
    for now in range(5):
        pace.note(Event("EPOCH", {"seconds": 10.0}), 1000.0 + now)
    pace.pause(1005.0, 5000.0)
    for now in range(5):
        pace.note(Event("EPOCH", {"seconds": 4100.0}), 5001.0 + now)
    assert not pace.is_usual(10.1)
    pace.note(Event("EPOCH", {"seconds": 20.0}), 5030.0)
    assert pace.is_usual(20.0)


def test_who_has_seen_nothing_but_pauses_knows_no_pace() -> None:
    pace = Pace()
    for now in range(10):
        pace.note(Event(STEP_END), float(now))
        pace.pause(now - 0.5, float(now))
    assert pace.limit_s(None) is None and pace.limit_s(7.0) == 7.0


def after_long_work(name: str, pauses: Sequence[tuple[float, float]], is_read_first: bool = False) -> Pace:
    """A training whose first evaluation, checkpoint or epoch took 1000 s, with pauses (from when to when) in it."""
    pace, saves = Pace(saves=name == EventName.CHECKPOINT), name == EventName.CHECKPOINT
    events = [(EVALUATE if saves else STEP_END, -21.0), *[(STEP_END, float(step)) for step in range(-20, 1)]]
    for each, now in [(TRAIN_START, -22.0), *events]:
        pace.note(Event(each), now)
    paused = [partial(pace.pause, *each) for each in pauses]
    done = [partial(pace.note, Event(name, {"seconds": 1000.0}), 1000.0)]
    for step in (*done, *paused) if is_read_first else (*paused, *done):
        step()
    return pace


@pytest.mark.parametrize("is_read_first", [False, True])
@pytest.mark.parametrize("name", [EVALUATE, EventName.CHECKPOINT, "EPOCH"])
def test_long_work_with_a_short_pause_in_it_is_as_long_as_it_took_without(
    name: str, is_read_first: bool
) -> None:
    """It is to be allowed to take as long again."""
    pauses = [(980.0, 990.0), (990.01, 1000.0)]  # told look by look
    assert after_long_work(name, pauses, is_read_first).limit_s(None) == pytest.approx(5 * 980, abs=0.1)


@pytest.mark.parametrize("is_read_first", [False, True])
@pytest.mark.parametrize("name", [EVALUATE, EventName.CHECKPOINT, "EPOCH"])
def test_of_long_work_that_was_mostly_a_pause_nobody_knows_how_long_it_takes(
    name: str, is_read_first: bool
) -> None:
    seen = after_long_work(name, [(300.0, 1000.0)], is_read_first)
    assert seen.limit_s(None) == pace.LEAST_BEFORE_LONG_WORK_S and not seen.is_usual(300.0)


def test_a_suspension_of_any_length_is_one_pause() -> None:
    pace = Pace()
    for now in range(10):
        pace.note(Event(STEP_END), float(now))
    for now in range(9, 5000):
        pace.pause(now + 0.01, now + 1.0)
    pace.note(Event(STEP_END), 5001.0)
    assert pace.is_usual(1.0) and not pace.is_usual(1.1)


def test_a_pause_while_an_old_log_is_read_leaves_its_long_evaluations_known() -> None:
    """Of a round that is taken up; with more steps after it than gaps are kept."""
    seen = Pace()
    for number, name in enumerate([TRAIN_START, EVALUATE, *[STEP_END] * (pace.GAPS_KEPT + 5)]):
        seen.note(Event(name, time_ms=1 + 1000 * (number + 1200 * (number > 0))), 50.0)
    seen.pause(34.0, 50.0)
    seen.note(Event(STEP_END), 51.0)
    assert seen.limit_s(None) == 5 * 1201.0


def test_nothing_is_hung_where_it_is_turned_off() -> None:
    assert limit(*INITIAL, *STEPS, setting=0.0) is None


def test_fast_steps_have_the_least_limit_and_initialising_does_not_count() -> None:
    assert limit(*INITIAL, *STEPS) == pace.LEAST_S


def test_slow_steps_have_a_multiple_of_their_own() -> None:
    assert limit(*INITIAL, (TRAIN_START, 2.0), *[(STEP_END, 40.0)] * 9) == 20 * 40.0


def test_a_long_evaluation_is_allowed_to_come_again() -> None:
    gaps = [(TRAIN_START, 2.0), *[(STEP_END, 1.0)] * 50, (EVALUATE, 200.0), (STEP_END, 1.0)]
    assert limit(*INITIAL, *gaps) == 5 * 200.0


@pytest.mark.parametrize(
    ("saves", "more", "expected"),
    [
        (False, [], pace.LEAST_BEFORE_LONG_WORK_S),
        (False, [(EVALUATE, 3.0)], pace.LEAST_S),
        (True, [(EVALUATE, 3.0)], pace.LEAST_BEFORE_LONG_WORK_S),
        (True, [(EVALUATE, 3.0), (EventName.CHECKPOINT, 9.0)], pace.LEAST_S),
        (False, [(EVALUATE, 3.0), (EventName.TRAIN_END, 1.0)], pace.LEAST_BEFORE_LONG_WORK_S),
    ],
)
def test_before_work_of_which_nobody_knows_how_long_it_takes_there_is_more_time(
    saves: bool, more: Gaps, expected: float
) -> None:
    """A training that is right must not be ended."""
    assert limit(*STEPS, *more, saves=saves) == expected


def test_a_script_may_report_steps_and_nothing_else() -> None:
    assert limit(*[(STEP_END, 200.0)] * 5) == 20 * 200.0
    assert limit(*[("MY_OWN_EVENT", 200.0)] * 50) is None


def test_a_clock_that_is_set_makes_nothing_hang() -> None:
    seen = Pace()
    for number, time_ms in enumerate((10**12, 5, 10**12, 0, 7, 10**12)):
        seen.note(Event(STEP_END, time_ms=time_ms), 1000.0 + number)
    assert (seen.limit_s(None) or 0) > 10**9


def test_a_training_notes_its_own_pace() -> None:
    state = TrainingState()
    for event in (
        Event(EventName.INIT_START, {"config": {"save_steps": 100}}),
        Event(EventName.HOOKS),
        Event(EventName.INIT_EVALUATION),
        Event(TRAIN_START),
        *[Event(STEP_END, {"global_steps": step}) for step in range(5)],
    ):
        state.update(event)
    assert state.pace.saves
    assert state.pace.limit_s(None) == pace.LEAST_BEFORE_LONG_WORK_S
