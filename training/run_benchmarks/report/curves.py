"""A round's training as global rank 0 reported it: curves over steps and time, and the phases of its time."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from run_benchmarks.report.chart import Phase
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
_NAMES = frozenset(name.value for name in EventName)


def _empty() -> array[float]:
    return array("d")


@dataclass
class Curves:
    """What rank 0 reported. Times in ms since the epoch, by the clock of its host.

    steps: by column, `time_ms`, `global_steps` and the keys of STEP_CURVES, NaN where a step did not say.
    evaluations: time, step, the metric's value. times: event name -> its first and last time.
    spells: what interrupted the training: its kind of phase, when it began and when it ended.
    more_steps: those that are left out.
    """

    metric: str = ""
    steps: dict[str, array[float]] = field(default_factory=lambda: {name: _empty() for name in COLUMNS})
    evaluations: list[tuple[float, float, float]] = field(default_factory=list)
    spells: list[tuple[str, float, float]] = field(default_factory=list)
    times: dict[str, tuple[int, int]] = field(default_factory=dict)
    more_steps: int = 0
    first_ms: int | None = None
    last_ms: int | None = None

    def take(self, event: Event) -> None:
        """Take in the next event; one without a time has no place on the axis."""
        if event.time_ms <= 0:
            return
        self.first_ms = event.time_ms if self.first_ms is None else min(self.first_ms, event.time_ms)
        self.last_ms = event.time_ms if self.last_ms is None else max(self.last_ms, event.time_ms)
        if event.name in _NAMES:
            self.times[event.name] = self.times.get(event.name, (event.time_ms,))[0], event.time_ms
        if event.name == EventName.STEP_END:
            self._stepped(event)
        elif event.name in (EventName.EVALUATE, EventName.INIT_EVALUATION):
            self._evaluated(event)
        elif event.name == EventName.CHECKPOINT:
            self._lasted("checkpoint", event, "checkpoint_time")

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
        self._lasted("evaluate", event, "eval_time")

    def _lasted(self, kind: str, event: Event, name: str) -> None:
        """Take in what ended with the event, after as many seconds as it says under `name`."""
        seconds = _number(event.value, name)
        if seconds > 0 and len(self.spells) < MOST_PHASES:
            self.spells.append((kind, event.time_ms - seconds * 1000, event.time_ms))

    def phases(self) -> list[Phase]:
        """The phases of its time, in seconds since the first event; what has no end lasts until the last one."""
        if self.first_ms is None or self.last_ms is None:
            return []
        spans = [("init", *self._span(EventName.INIT_START, EventName.INIT_END, EventName.TRAIN_START))]
        spans.append(("train", *self._span(EventName.TRAIN_START, EventName.TRAIN_END)))
        spans += self.spells
        return [
            Phase(kind, (start - self.first_ms) / 1000, (end - self.first_ms) / 1000)
            for kind, start, end in spans
            if start is not None and end is not None and end > start
        ]

    def _span(self, start: EventName, *ends: EventName) -> tuple[float | None, float | None]:
        begun = self.times.get(start)
        ended = next((self.times[end][1] for end in ends if end in self.times), self.last_ms)
        return (begun[0] if begun else None), ended


def _number(values: Mapping[str, Any], name: str) -> float:
    number = number_in(values, name)
    return NAN if number is None else float(number)
