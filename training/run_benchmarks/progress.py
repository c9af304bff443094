"""What the runner tells whoever watches: the terminal's live table, or plain lines."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from run_benchmarks.names import Node
from run_benchmarks.report.results import RoundResult
from utils.events import Event, EventName


@dataclass
class TrainingState:
    """What rank 0 has reported so far in one round; None is "not reported yet"."""

    step: int | None = None
    loss: float | None = None
    metric_name: str = ""
    metric: float | None = None
    target: float | None = None
    samples_per_second: float | None = None
    max_steps: int | None = None
    started_at: float | None = None
    progressed_at: float | None = None
    phase: str = ""
    seen: set[str] = field(default_factory=set)

    def update(self, event: Event) -> None:
        """Take in one event."""
        value = event.value
        self.seen.add(event.name)
        self.progressed_at = time.monotonic()
        if event.name == EventName.TRAIN_START:
            self.started_at = time.monotonic()
        self.phase = PHASES.get(event.name, self.phase)
        self._take(value)
        config = value.get("config")  # INIT_START tells what the case was configured with
        if isinstance(config, Mapping):
            self._take({name: config.get(name) for name in ("target", "max_steps")})

    def _take(self, value: Mapping[str, Any]) -> None:
        self.step = _int(value, "global_steps", self.step)
        self.loss = _float(value, "loss", self.loss)
        self.samples_per_second = _float(value, "seq/s", self.samples_per_second)
        self.target = _float(value, "target", self.target)
        self.max_steps = _int(value, "max_steps", self.max_steps)
        self.metric_name = str(value.get("metric") or self.metric_name)
        if self.metric_name:
            self.metric = _float(value, self.metric_name, self.metric)

    def seconds_left(self) -> float | None:
        """Time until the step cap at the pace so far; meeting the target ends the run earlier."""
        if not (self.step and self.max_steps and self.started_at):
            return None
        elapsed = time.monotonic() - self.started_at
        return elapsed / self.step * max(0, self.max_steps - self.step)


PHASES: Mapping[str, str] = {
    EventName.INIT_START.value: "initialising",
    EventName.TRAIN_START.value: "training",
    EventName.TRAIN_END.value: "finishing",
    EventName.FINISHED.value: "finished",
}


def _int(value: Mapping[str, Any], name: str, before: int | None) -> int | None:
    found = _float(value, name, None)
    return int(found) if found is not None and math.isfinite(found) else before


def _float(value: Mapping[str, Any], name: str, before: float | None) -> float | None:
    found = value.get(name)
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else before


class Progress(Protocol):
    """Told of every change while a run goes on; shows it, decides nothing."""

    def round_started(self, nodes: tuple[Node, ...], training: TrainingState) -> None:
        """A round begins on `nodes`; `training` is filled while it runs."""
        ...

    def stage(self, node: Node | None, name: str) -> None:
        """A node (None: every node of the round) has come to the stage `name`."""
        ...

    def event(self, event: Event) -> None:
        """Rank 0 reported `event`."""
        ...

    def round_ended(self, result: RoundResult) -> None:
        """The round has its verdict."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...
