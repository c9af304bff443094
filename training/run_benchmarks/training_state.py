"""What rank 0 has reported of a round that goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from run_benchmarks.pace import Pace
from run_benchmarks.search_state import SearchState
from utils.checkpoints import continued_of
from utils.events import Event, EventName
from utils.numbers import number_in
from utils.search.events import SearchEvent

MOST_COUNTED = 2**53  # up to it a float is exact
LONGEST_NAME = 64  # characters of a metric: it is shown again and again


@dataclass(frozen=True)
class _Done:
    """What had been trained at `time_ms` of rank 0's clock."""

    time_ms: int
    step: int | None
    samples: int | None


@dataclass
class TrainingState:
    """What rank 0 has reported so far in one round; None is "not reported yet".

    Steps and samples count over all parts of a round that goes on with an earlier one; `start_step` and
    `start_samples` are what had been trained when this part began. `metric` was evaluated after `evaluated_step`;
    is_initial: by the evaluation before training.

    search: what a search's controller has reported.
    started_ms: TRAIN_START by rank 0's own clock, in ms; progressed_at: any event, by the controller's (monotonic, s).
    """

    step: int | None = None
    loss: float | None = None
    metric_name: str = ""
    metric: float | None = None
    evaluated_step: int | None = None
    is_initial: bool = False
    target: float | None = None
    samples_per_second: float | None = None
    max_steps: int | None = None
    samples: int | None = None
    max_samples: int | None = None
    start_step: int = 0
    start_samples: int = 0
    started_ms: int | None = None
    progressed_at: float | None = None
    pace: Pace = field(default_factory=Pace)
    phase: str = ""
    search: SearchState = field(default_factory=SearchState)
    _done: _Done | None = None

    @property
    def is_target_met(self) -> bool:
        """Whether the last evaluation met the target; the initial one ends nothing."""
        if self.metric is None or self.target is None or self.is_initial:
            return False
        return self.metric >= self.target

    def update(self, event: Event) -> None:
        """Take in one event."""
        value = event.value
        self.progressed_at = time.monotonic()
        self.pace.note(event, self.progressed_at)
        if event.name == EventName.TRAIN_START:
            self.started_ms = event.time_ms
        self.phase = PHASES.get(event.name, self.phase)
        self.search.take(event)
        self._take(value)
        if event.name == EventName.STEP_END and "loss" in value and number_in(value, "loss") is None:
            self.loss = math.nan  # it has diverged, for which JSON has no number
        if event.name == EventName.INIT_END:
            self._continue_from(continued_of(value) or {})
        self._note_evaluation(event)
        if event.name == EventName.FINISHED:  # the only event whose counters are of this part alone
            self._count_all_parts(value)
        if event.name in DONE:
            self._done = _Done(event.time_ms, self.step, self.samples)
        config = value.get("config")  # INIT_START tells what the case was configured with
        if isinstance(config, Mapping):
            self._take({name: config.get(name) for name in CONFIGURED})
            self.pace.saves = number_in(config, "save_steps") is not None

    def _take(self, value: Mapping[str, Any]) -> None:
        self.step = _int(value, "global_steps", self.step)
        self.loss = _float(value, "loss", self.loss)
        self.samples_per_second = _float(value, "seq/s", self.samples_per_second)
        self.target = _float(value, "target", self.target)
        self.samples = _int(value, "num_trained_samples", self.samples)
        self.max_steps = _int(value, "max_steps", self.max_steps)
        self.max_samples = _int(value, "max_samples_termination", self.max_samples)
        self.metric_name = str(value.get("metric") or "")[:LONGEST_NAME] or self.metric_name
        if self.metric_name:
            self.metric = _float(value, self.metric_name, self.metric)

    def _continue_from(self, continued: Mapping[str, Any]) -> None:
        """INIT_END tells what the round went on from; the initial evaluation was of that."""
        self.start_step = _int(continued, "step", None) or 0
        self.start_samples = _int(continued, "samples", None) or 0
        if self.is_initial:
            self.step = self.evaluated_step = self.start_step

    def _note_evaluation(self, event: Event) -> None:
        if event.name == EventName.INIT_EVALUATION:
            self.is_initial, self.step = True, self.step or self.start_step
        elif event.name == EventName.EVALUATE:
            self.is_initial = False
        else:
            return
        self.evaluated_step = self.step

    def _count_all_parts(self, value: Mapping[str, Any]) -> None:
        step, samples = _int(value, "global_steps", None), _int(value, "num_trained_samples", None)
        self.step = self.step if step is None else self.start_step + step
        self.samples = self.samples if samples is None else self.start_samples + samples

    def seconds_left(self) -> float | None:
        """Time until the first cap, of steps or of samples, at this part's pace; meeting the target ends it earlier.

        As of what was last reported done. Both ends of the pace are rank 0's own times: events come here late, and
        many at once.
        """
        done = self._done
        if not self.started_ms or done is None or done.time_ms <= self.started_ms:
            return None
        elapsed = (done.time_ms - self.started_ms) / 1000
        caps = (
            (self.start_step, done.step, self.max_steps),
            (self.start_samples, done.samples, self.max_samples),
        )
        left = [
            elapsed / (now - start) * max(0, cap - now)
            for start, now, cap in caps
            if now is not None and cap is not None and now > start
        ]
        return min(filter(math.isfinite, left), default=None)


# The events that say what has been done; STEP_BEGIN names a step that has not.
DONE = (EventName.STEP_END, EventName.EVALUATE, EventName.TRAIN_END, EventName.FINISHED)
# What INIT_START's configuration tells of the end of training.
CONFIGURED = ("target", "max_steps", "max_samples_termination")
PHASES: Mapping[str, str] = {
    EventName.INIT_START.value: "initialising",
    EventName.INIT_EVALUATION.value: "initial evaluation",
    EventName.TRAIN_START.value: "training",
    EventName.TRAIN_END.value: "finishing",
    EventName.FINISHED.value: "finished",
    SearchEvent.SEARCH_START.value: "initialising",
    SearchEvent.TRIAL_START.value: "training",
    SearchEvent.SEARCH_END.value: "finishing",
}


def _int(value: Mapping[str, Any], name: str, before: int | None) -> int | None:
    """A count as an event tells it; `before` where there is none, or more than anything can be counted to."""
    number = number_in(value, name)
    return before if number is None or abs(number) > MOST_COUNTED else int(number)


def _float(value: Mapping[str, Any], name: str, before: float | None) -> float | None:
    number = number_in(value, name)
    return before if number is None else number
