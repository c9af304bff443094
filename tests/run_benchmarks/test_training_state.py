"""What is known of a training, from the events that rank 0 has reported so far."""

from __future__ import annotations

import math

import pytest

from run_benchmarks import training_state
from run_benchmarks.training_state import TrainingState
from tests.run_benchmarks.builders import training_events
from utils.events import Event, EventName


class Clock:
    """The clock that the state reads."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(training_state, "time", clock)
    return clock


def test_nothing_is_known_at_first() -> None:
    state = TrainingState()
    assert (state.step, state.loss, state.metric, state.progressed_at) == (None, None, None, None)
    assert state.seconds_left() is None


def test_a_training_from_its_start_to_its_end(clock: Clock) -> None:
    state = TrainingState()
    phases = []
    for event in training_events():
        clock.now += 1
        state.update(event)
        phases.append(state.phase)
    assert phases == ["initialising", "training", "training", "finishing", "finished"]
    assert state.step == 50  # FINISHED holds the last step
    assert state.loss == 7.0
    assert state.samples_per_second == 100.0
    assert state.metric_name == "mlm_accuracy"
    assert state.target == 0.3
    assert state.progressed_at == 105.0
    assert state.started_at == 102.0


def test_what_an_event_does_not_say_stays_as_it_was() -> None:
    state = TrainingState()
    state.update(Event(EventName.STEP_END, {"global_steps": 3, "loss": 2.5, "seq/s": 10.0}))
    state.update(Event("MY_OWN_EVENT", {"loss": None, "global_steps": "many", "seq/s": True}))
    assert (state.step, state.loss, state.samples_per_second) == (3, 2.5, 10.0)


def test_the_metric_by_its_name() -> None:
    state = TrainingState()
    state.update(Event(EventName.INIT_EVALUATION, {"metric": "exact_match", "target": 0.8}))
    state.update(Event(EventName.EVALUATE, {"exact_match": 0.5, "global_steps": 10}))
    assert (state.metric_name, state.metric, state.target) == ("exact_match", 0.5, 0.8)


def test_the_time_left_is_that_until_the_cap(clock: Clock) -> None:
    state = TrainingState()
    state.update(Event(EventName.TRAIN_START, {"max_steps": 100}))
    assert state.seconds_left() is None  # no pace yet
    clock.now += 20
    state.update(Event(EventName.STEP_END, {"global_steps": 40}))
    assert state.seconds_left() == pytest.approx(30.0)
    state.update(Event(EventName.STEP_END, {"global_steps": 120}))
    assert state.seconds_left() == 0.0


def test_the_time_left_of_a_continued_round_is_at_this_parts_pace(clock: Clock) -> None:
    state = TrainingState()
    state.update(Event(EventName.INIT_END, {"continued": {"step": 900, "samples": 9000}}))
    state.update(Event(EventName.TRAIN_START, {"max_steps": 1000}))
    clock.now += 20
    state.update(Event(EventName.STEP_END, {"global_steps": 900}))
    assert state.seconds_left() is None  # of this part there is no step yet
    state.update(Event(EventName.STEP_END, {"global_steps": 940}))
    assert state.seconds_left() == pytest.approx(30.0)
    state.update(Event(EventName.FINISHED, {"global_steps": 100, "num_trained_samples": 1000}))
    assert (state.step, state.samples) == (1000, 10000)


@pytest.mark.parametrize(("max_steps", "left"), [(None, 45.0), (50, 15.0), (500, 45.0)])
def test_the_cap_that_comes_first_counts(clock: Clock, max_steps: int | None, left: float) -> None:
    state = TrainingState()
    config = {"max_steps": max_steps, "max_samples_termination": 1300}
    state.update(Event(EventName.INIT_START, {"config": config}))
    state.update(Event(EventName.INIT_END, {"continued": {"step": 10, "samples": 100}}))
    state.update(Event(EventName.TRAIN_START, {}))
    clock.now += 15
    state.update(Event(EventName.STEP_END, {"global_steps": 30, "num_trained_samples": 400}))
    assert state.seconds_left() == pytest.approx(left)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_loss_that_diverged_is_shown_and_an_odd_step_is_not(odd: float) -> None:
    state = TrainingState()
    state.update(Event(EventName.STEP_END, {"global_steps": 5, "loss": 1.0}))
    state.update(Event(EventName.STEP_END, {"global_steps": odd, "loss": odd}))
    assert state.step == 5
    assert state.loss is not None and not math.isfinite(state.loss)
