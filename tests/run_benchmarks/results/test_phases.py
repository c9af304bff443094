"""The phases of a rank's time, by its events."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from run_benchmarks.results.phases import DEFINITIONS, MOST_SPELLS, Phase, PhaseEvents
from utils.events import Event, EventName
from utils.telemetry.records import Window

S = 1000
T0 = 1_700_000_000_000


def event(name: EventName, second: float, **value: object) -> Event:
    return Event(name.value, value, T0 + int(second * S))


def phases_of(*events: Event, end_s: float | None = None) -> Mapping[Phase, list[tuple[float, float]]]:
    """Each phase's times, in seconds since T0."""
    told = PhaseEvents()
    for each in events:
        told.take(each)
    windows = told.windows(None if end_s is None else T0 + end_s * S)
    return {
        phase: [((each.start_ms - T0) / S, (each.end_ms - T0) / S) for each in of_phase]
        for phase, of_phase in windows.items()
    }


START, END = event(EventName.TRAIN_START, 10), event(EventName.TRAIN_END, 100)


def test_every_moment_of_the_training_is_in_one_phase() -> None:
    phases = phases_of(
        event(EventName.INIT_START, 2, ranks_start_ms=T0 + 500),
        event(EventName.INIT_END, 9),
        START,
        event(EventName.STEP_END, 15),
        event(EventName.STEP_END, 25),
        event(EventName.EVALUATE, 40, eval_time=4.0),
        event(EventName.CHECKPOINT, 50, checkpoint_time=2.0),
        event(EventName.EVALUATE, 100, eval_time=5.0),
        END,
    )
    assert phases == {
        Phase.INIT: [(2, 9)],
        Phase.WARM_UP: [(10, 15)],
        Phase.TRAIN: [(15, 36), (40, 48), (50, 95)],
        Phase.EVALUATE: [(36, 40), (95, 100)],
        Phase.CHECKPOINT: [(48, 50)],
    }
    assert {*phases, Phase.IDLE} == set(DEFINITIONS)


def test_an_evaluation_before_the_first_step_that_is_logged_is_no_warm_up() -> None:
    phases = phases_of(
        START, event(EventName.EVALUATE, 20, eval_time=4.0), event(EventName.STEP_END, 30), END
    )
    assert phases[Phase.WARM_UP] == [(10, 16), (20, 30)]
    assert phases[Phase.TRAIN] == [(30, 100)]


def test_what_was_measured_has_the_warm_up_of_each_operation() -> None:
    phases = phases_of(
        START,
        event(EventName.STEP_BEGIN, 10),
        event(EventName.STEP_END, 30, warm_up_time=8.0),
        event(EventName.STEP_BEGIN, 31),
        event(EventName.STEP_END, 40, warm_up_time=None),  # an operation that the chip has not
        event(EventName.STEP_BEGIN, 41),
        event(EventName.STEP_END, 90, warm_up_time=9.0),
        END,
    )
    assert phases[Phase.WARM_UP] == [(10, 18), (41, 50)]
    assert phases[Phase.TRAIN] == [(18, 41), (50, 100)]


def test_the_last_training_counts_of_a_script_that_begins_it_anew() -> None:
    first = [event(EventName.TRAIN_START, 1), event(EventName.EVALUATE, 5, eval_time=2.0)]
    phases = phases_of(*first, START, event(EventName.STEP_END, 20), END)
    assert phases == {Phase.WARM_UP: [(10, 20)], Phase.TRAIN: [(20, 100)]}


def test_of_a_training_that_was_cut_off_a_chart_shows_what_there_was() -> None:
    begun = [event(EventName.INIT_START, 1), START, event(EventName.STEP_END, 12)]
    assert phases_of(*begun) == {Phase.INIT: [(1, 10)]}
    assert phases_of(*begun, end_s=30) == {
        Phase.INIT: [(1, 10)],
        Phase.WARM_UP: [(10, 12)],
        Phase.TRAIN: [(12, 30)],
    }


@pytest.mark.parametrize("seconds", [None, "long", -5.0, 1e200, True])
def test_a_time_that_is_none_makes_no_phase(seconds: object) -> None:
    phases = phases_of(START, event(EventName.EVALUATE, 50, eval_time=seconds), END)
    assert phases.get(Phase.EVALUATE) in (None, [(10, 50)])  # the longest is cut at the training's begin
    assert Phase.TRAIN in phases


def test_evaluations_without_end_are_counted_and_not_kept() -> None:
    told = PhaseEvents()
    for number in range(MOST_SPELLS + 7):
        told.take(event(EventName.EVALUATE, 20 + number, eval_time=0.5))
    assert told.more_spells == 7


def test_where_a_training_was_and_when_its_ranks_began() -> None:
    told = PhaseEvents()
    for each in (event(EventName.INIT_START, 2, ranks_start_ms=T0 + 500), START, END):
        told.take(each)
    assert (told.ranks_start_ms, told.training()) == (T0 + 500, Window(T0 + 10 * S, T0 + 100 * S))
    old = PhaseEvents()
    old.take(event(EventName.INIT_START, 2))
    assert (old.ranks_start_ms, old.training()) == (None, None)
