"""What is known of a training, from the events that rank 0 has reported so far."""

from __future__ import annotations

import math

import pytest

from run_benchmarks import training_state
from run_benchmarks.training_state import TrainingState
from tests.run_benchmarks.builders import START_MS, training_events
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
    assert phases == ["initialising", "training", "training", "training", "finishing", "finished"]
    assert state.step == 50  # FINISHED holds the last step
    assert state.loss == 7.0
    assert state.samples_per_second == 100.0
    assert state.metric_name == "mlm_accuracy"
    assert state.target == 0.3
    assert state.progressed_at == 106.0
    assert state.started_ms == START_MS


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


def _train_start(**value: object) -> Event:
    return Event(EventName.TRAIN_START, value, START_MS)


def _step(seconds: float, step: int, **value: object) -> Event:
    """A step that ended `seconds` after TRAIN_START."""
    return Event(EventName.STEP_END, {"global_steps": step, **value}, START_MS + int(seconds * 1000))


def test_the_time_left_is_that_until_the_cap() -> None:
    state = TrainingState()
    state.update(_train_start(max_steps=100))
    assert state.seconds_left() is None  # no pace yet
    state.update(_step(20, 40))
    assert state.seconds_left() == pytest.approx(30.0)
    state.update(_step(60, 120))
    assert state.seconds_left() == 0.0


def test_the_time_left_goes_by_rank_0s_clock_however_late_its_events_come(clock: Clock) -> None:
    """A quick case's events come all at once: between them nothing passes on the controller's clock."""
    state = TrainingState()
    for event in (_train_start(max_steps=300), _step(2, 20), _step(5, 50)):
        state.update(event)
    assert state.seconds_left() == pytest.approx(25.0)
    clock.now += 60
    assert state.seconds_left() == pytest.approx(25.0)


def test_a_step_that_has_only_begun_makes_no_pace() -> None:
    state = TrainingState()
    state.update(_train_start())
    state.update(Event(EventName.STEP_BEGIN, {"global_steps": 1, "max_steps": 9}, START_MS + 5))
    assert state.seconds_left() is None


def test_the_time_left_of_a_continued_round_is_at_this_parts_pace() -> None:
    state = TrainingState()
    state.update(Event(EventName.INIT_END, {"continued": {"step": 900, "samples": 9000}}))
    state.update(_train_start(max_steps=1000))
    state.update(_step(20, 900))
    assert state.seconds_left() is None  # of this part there is no step yet
    state.update(_step(20, 940))
    assert state.seconds_left() == pytest.approx(30.0)
    state.update(Event(EventName.FINISHED, {"global_steps": 100, "num_trained_samples": 1000}))
    assert (state.step, state.samples) == (1000, 10000)


@pytest.mark.parametrize(("max_steps", "left"), [(None, 45.0), (50, 15.0), (500, 45.0)])
def test_the_cap_that_comes_first_counts(max_steps: int | None, left: float) -> None:
    state = TrainingState()
    config = {"max_steps": max_steps, "max_samples_termination": 1300}
    state.update(Event(EventName.INIT_START, {"config": config}))
    state.update(Event(EventName.INIT_END, {"continued": {"step": 10, "samples": 100}}))
    state.update(_train_start())
    state.update(_step(15, 30, num_trained_samples=400))
    assert state.seconds_left() == pytest.approx(left)


def test_counts_that_nobody_can_count_to_are_not_reported() -> None:
    """The difference of two of them is more than a float holds."""
    state = TrainingState()
    state.update(Event(EventName.INIT_END, {"continued": {"step": -1.7e308, "samples": 10**300}}))
    state.update(_train_start(max_steps=10))
    state.update(_step(1, 5))
    state.update(Event(EventName.STEP_END, {"global_steps": 1.7e308}, START_MS + 2000))
    assert (state.start_step, state.start_samples, state.step) == (0, 0, 5)
    assert state.seconds_left() is not None


def test_the_initial_evaluation_is_called_so() -> None:
    state = TrainingState()
    state.update(Event(EventName.INIT_EVALUATION, {"metric": "acc", "acc": 0.9, "target": 0.5}))
    assert (state.phase, state.step, state.evaluated_step) == ("initial evaluation", 0, 0)
    assert state.is_initial and not state.is_target_met
    state.update(Event(EventName.INIT_END))
    state.update(_train_start())
    state.update(_step(1, 20))
    assert (state.phase, state.step, state.evaluated_step, state.is_initial) == ("training", 20, 0, True)


def test_the_initial_evaluation_of_a_continued_round_is_of_the_step_that_it_goes_on_from() -> None:
    state = TrainingState()
    state.update(Event(EventName.INIT_EVALUATION, {"metric": "acc", "acc": 0.9, "target": 0.5}))
    state.update(Event(EventName.INIT_END, {"continued": {"step": 900, "samples": 9000}}))
    assert (state.step, state.evaluated_step, state.is_initial) == (900, 900, True)


def test_the_evaluation_that_meets_the_target_keeps_its_step() -> None:
    state = TrainingState()
    state.update(Event(EventName.EVALUATE, {"metric": "acc", "acc": 0.4, "target": 0.5, "global_steps": 40}))
    assert (state.evaluated_step, state.is_initial, state.is_target_met) == (40, False, False)
    state.update(_step(9, 60))
    state.update(Event(EventName.EVALUATE, {"metric": "acc", "acc": 0.5, "target": 0.5, "global_steps": 60}))
    assert (state.evaluated_step, state.is_target_met) == (60, True)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_loss_that_diverged_is_shown_and_an_odd_step_is_not(odd: float) -> None:
    state = TrainingState()
    state.update(Event(EventName.STEP_END, {"global_steps": 5, "loss": 1.0}))
    state.update(Event(EventName.STEP_END, {"global_steps": odd, "loss": odd}))
    assert state.step == 5
    assert state.loss is not None and not math.isfinite(state.loss)
