"""What rank 0 has reported of a round that goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from utils.events import Event, EventName
from utils.figures import continued_of


@dataclass
class TrainingState:
    """What rank 0 has reported so far in one round; None is "not reported yet".

    Steps and samples count over all parts of a round that goes on with an earlier one; `start_step` and
    `start_samples` are what had been trained when this part began.
    """

    step: int | None = None
    loss: float | None = None
    metric_name: str = ""
    metric: float | None = None
    target: float | None = None
    samples_per_second: float | None = None
    max_steps: int | None = None
    samples: int | None = None
    max_samples: int | None = None
    start_step: int = 0
    start_samples: int = 0
    started_at: float | None = None
    progressed_at: float | None = None
    phase: str = ""

    def update(self, event: Event) -> None:
        """Take in one event."""
        value = event.value
        self.progressed_at = time.monotonic()
        if event.name == EventName.TRAIN_START:
            self.started_at = time.monotonic()
        self.phase = PHASES.get(event.name, self.phase)
        self._take(value)
        continued = continued_of(value)  # INIT_END tells what the round went on from
        if event.name == EventName.INIT_END and continued:
            self.start_step = _int(continued, "step", None) or 0
            self.start_samples = _int(continued, "samples", None) or 0
        if event.name == EventName.FINISHED:  # the only event whose counters are of this part alone
            self._count_all_parts(value)
        config = value.get("config")  # INIT_START tells what the case was configured with
        if isinstance(config, Mapping):
            self._take({name: config.get(name) for name in CONFIGURED})

    def _take(self, value: Mapping[str, Any]) -> None:
        self.step = _int(value, "global_steps", self.step)
        self.loss = _float(value, "loss", self.loss)
        self.samples_per_second = _float(value, "seq/s", self.samples_per_second)
        self.target = _float(value, "target", self.target)
        self.samples = _int(value, "num_trained_samples", self.samples)
        self.max_steps = _int(value, "max_steps", self.max_steps)
        self.max_samples = _int(value, "max_samples_termination", self.max_samples)
        self.metric_name = str(value.get("metric") or self.metric_name)
        if self.metric_name:
            self.metric = _float(value, self.metric_name, self.metric)

    def _count_all_parts(self, value: Mapping[str, Any]) -> None:
        step, samples = _int(value, "global_steps", None), _int(value, "num_trained_samples", None)
        self.step = self.step if step is None else self.start_step + step
        self.samples = self.samples if samples is None else self.start_samples + samples

    def seconds_left(self) -> float | None:
        """Time until the first cap, of steps or of samples, at this part's pace; meeting the target ends it earlier."""
        if self.started_at is None:
            return None
        elapsed = time.monotonic() - self.started_at
        caps = (
            (self.start_step, self.step, self.max_steps),
            (self.start_samples, self.samples, self.max_samples),
        )
        left = [
            elapsed / (now - start) * max(0, cap - now)
            for start, now, cap in caps
            if now is not None and cap is not None and now > start
        ]
        return min(left, default=None)


# What INIT_START's configuration tells of the end of training.
CONFIGURED = ("target", "max_steps", "max_samples_termination")
PHASES: Mapping[str, str] = {
    EventName.INIT_START.value: "initialising",
    EventName.TRAIN_START.value: "training",
    EventName.TRAIN_END.value: "finishing",
    EventName.FINISHED.value: "finished",
}


def _int(value: Mapping[str, Any], name: str, before: int | None) -> int | None:
    number = _float(value, name, None)
    return int(number) if number is not None and math.isfinite(number) else before


def _float(value: Mapping[str, Any], name: str, before: float | None) -> float | None:
    number = value.get(name)
    return float(number) if isinstance(number, (int, float)) and not isinstance(number, bool) else before
