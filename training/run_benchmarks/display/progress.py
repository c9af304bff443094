"""What a panel shows of a round: what rank 0 has reported so far, its course, and what the nodes draw."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from run_benchmarks.display.course import Course
from run_benchmarks.display.lines import operation_of
from run_benchmarks.display.power_meter import Power, PowerMeter
from run_benchmarks.names import Node
from run_benchmarks.training_state import TrainingState
from utils.events import Event, EventName
from utils.numbers import number_in
from utils.parameters import KIND, MeasurementSettings
from utils.search.events import SearchEvent
from utils.telemetry.records import SourceInfo

if TYPE_CHECKING:
    from utils.telemetry.series import AnyTick

# A monitor that has said nothing for so long says nothing of now.
POWER_KEPT_S = 15.0
MOST_OPERATIONS = 1_000  # that are remembered; a case has a hundred


@dataclass
class Progress:
    """A round that goes on. `start`: the metric before training; `operations`: what a measurement has come to."""

    nodes: tuple[Node, ...]
    training: TrainingState
    stages: dict[Node, str] = field(default_factory=dict)
    start: float | None = None
    loss: Course = field(default_factory=Course)
    metric: Course = field(default_factory=Course)
    rate: Course = field(default_factory=Course)
    operations: list[tuple[str, str]] = field(default_factory=list)
    begun_at: float = field(default_factory=time.monotonic)
    _powers: dict[Node, tuple[float, Power]] = field(default_factory=dict)
    _meters: dict[Node, PowerMeter] = field(default_factory=dict)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the round had its hosts."""
        return time.monotonic() - self.begun_at

    @property
    def measures(self) -> bool:
        """Whether the case measures operations and has no target."""
        return is_measurement(self.nodes)

    def event(self, event: Event) -> None:
        """Take in an event that `training` has taken in."""
        if event.name == EventName.INIT_EVALUATION:
            self.start = _metric_before(event, self.training.metric_name)
        if event.name == SearchEvent.EPOCH:
            now = self.training.search.now()
            self.metric.add(now.accuracy if now else None)
            self.rate.add(now.score if now else None)
        elif self.measures:
            self._measured(event)
        elif event.name == EventName.STEP_END:
            self.loss.add(self.training.loss)
            self.rate.add(self.training.samples_per_second)
        elif event.name == EventName.EVALUATE:
            self.metric.add(self.training.metric)

    def _measured(self, event: Event) -> None:
        operation = operation_of(event)
        if operation is None or len(self.operations) >= MOST_OPERATIONS:
            return
        if event.name == EventName.STEP_END:
            self.operations.append((operation.name, operation.outcome))

    def to_target(self) -> float:
        """How much of the way from the metric before training to its target is done, 0 to 1."""
        state = self.training
        if state.target is None or state.metric is None:
            return 0.0
        start = self.start if self.start is not None else 0.0
        if state.metric >= state.target or state.target <= start:
            return float(state.metric >= state.target)
        return max(0.0, (state.metric - start) / (state.target - start))

    def to_cap(self) -> tuple[float, str, str] | None:
        """How much of what may be trained is done, 0 to 1, of what, and in words; by the cap that is nearer."""
        state = self.training
        if self.measures:
            return self._operations_done()
        caps = ((state.step, state.max_steps, "steps"), (state.samples, state.max_samples, "samples"))
        parts = [
            (min(1.0, done / cap), what, f"{done} / {cap}")
            for done, cap, what in caps
            if cap and done is not None
        ]
        return max(parts, default=None)

    def _operations_done(self) -> tuple[float, str, str] | None:
        done, count, name = len(self.operations), self.training.max_steps, self.training.metric_name
        if not count:
            return None
        under_way = f", {name} under way" if done < count else ""
        return min(1.0, done / count), "operations", f"{done} / {count}{under_way}"

    def telemetry(self, node: Node, record: AnyTick | SourceInfo) -> None:
        """A record of a node's monitor."""
        power = self._meters.setdefault(node, PowerMeter()).take(record)
        if power is not None:
            self.draws(node, power)

    def draws(self, node: Node, power: Power) -> None:
        """A node's power now."""
        self._powers[node] = (time.monotonic(), power)

    def powers(self) -> Mapping[Node, Power]:
        """The power of the nodes that were sampled a moment ago."""
        now = time.monotonic()
        return {node: power for node, (at, power) in self._powers.items() if now - at <= POWER_KEPT_S}


def is_measurement(nodes: tuple[Node, ...]) -> bool:
    """Whether what runs on these nodes measures operations and has no target."""
    return nodes[0].case.parameters.get(KIND) == MeasurementSettings.kind


def _metric_before(event: Event, metric: str) -> float | None:
    """The metric of the evaluation before training, else what the case calls its baseline."""
    before = number_in(event.value, metric)
    return before if before is not None else number_in(event.value, "baseline")
