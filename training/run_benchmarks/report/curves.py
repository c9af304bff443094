"""A round's training as global rank 0 reported it: curves over steps and time, and the phases of its time."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from run_benchmarks.report.chart import Phase
from run_benchmarks.results.phases import Phase as PhaseName
from run_benchmarks.results.phases import PhaseEvents
from utils.events import Event, EventName
from utils.numbers import number_in

# Of an event that stands thousands of times in a log: ten hours at twenty steps a second.
MOST_STEPS = 1_000_000
MOST_EVALUATIONS = 20_000
MOST_PHASES = 2_000  # that are shaded
LONGEST_NAME = 64
NAN = float("nan")
# What a STEP_END reports: its key, what the curve is, its unit.
STEP_CURVES = (
    ("loss", "Loss", ""),  # the case's own unit
    ("seq/s", "Throughput", "samples/s"),
    ("learning_rate", "Learning rate", ""),
)

COLUMNS = ("time_ms", "global_steps", *(key for key, _, _ in STEP_CURVES))


def _empty() -> array[float]:
    return array("d")


@dataclass
class Curves:
    """What rank 0 reported. Times in ms since the epoch, by the clock of its host.

    steps: by column, `time_ms`, `global_steps` and the keys of STEP_CURVES, NaN where a step did not say.
    evaluations: time, step, the metric's value.
    phase_events: what tells the phases. more_steps: those that are left out.
    """

    metric: str = ""
    steps: dict[str, array[float]] = field(default_factory=lambda: {name: _empty() for name in COLUMNS})
    evaluations: list[tuple[float, float, float]] = field(default_factory=list)
    phase_events: PhaseEvents = field(default_factory=PhaseEvents)
    more_steps: int = 0
    first_ms: int | None = None
    last_ms: int | None = None

    def take(self, event: Event) -> None:
        """Take in the next event; one without a time has no place on the axis."""
        if event.time_ms <= 0:
            return
        self.first_ms = event.time_ms if self.first_ms is None else min(self.first_ms, event.time_ms)
        self.last_ms = event.time_ms if self.last_ms is None else max(self.last_ms, event.time_ms)
        self.phase_events.take(event)
        if event.name == EventName.STEP_END:
            self._stepped(event)
        elif event.name in (EventName.EVALUATE, EventName.INIT_EVALUATION):
            self._evaluated(event)

    def _stepped(self, event: Event) -> None:
        if len(self.steps["time_ms"]) >= MOST_STEPS:
            self.more_steps += 1
            return
        self.steps["time_ms"].append(event.time_ms)
        for name in COLUMNS[1:]:
            self.steps[name].append(_number(event.value, name))

    @property
    def left_out(self) -> str:
        """What is not in the curves, or nothing."""
        return (
            f"the curves end after {MOST_STEPS} steps: {self.more_steps} more are left out"
            if self.more_steps
            else ""
        )

    def _evaluated(self, event: Event) -> None:
        self.metric = self.metric or str(event.value.get("metric") or "")[:LONGEST_NAME]
        value = _number(event.value, self.metric)
        if len(self.evaluations) < MOST_EVALUATIONS:
            self.evaluations.append((event.time_ms, _number(event.value, "global_steps"), value))

    def phases(self, origin_ms: float) -> list[Phase]:
        """The phases of its time, in seconds since `origin_ms`; what has no end lasts until the last event.

        The training is one, and what lies in it beside its steps is drawn over it.
        """
        if self.last_ms is None:
            return []
        windows = self.phase_events.windows(self.last_ms)
        training = self.phase_events.training(self.last_ms)
        spans = {**windows, PhaseName.TRAIN: [training] if training else []}
        order = sorted(spans, key=[*PhaseName].index)
        order.sort(key=lambda kind: kind not in (PhaseName.INIT, PhaseName.TRAIN))
        return [
            Phase(kind.value, (each.start_ms - origin_ms) / 1000, (each.end_ms - origin_ms) / 1000)
            for kind in order
            for each in spans[kind][:MOST_PHASES]
        ]


def _number(values: Mapping[str, Any], name: str) -> float:
    number = number_in(values, name)
    return NAN if number is None else float(number)
