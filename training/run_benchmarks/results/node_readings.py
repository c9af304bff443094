"""A node's readings besides power, summed up by the parts of the round in which they count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from run_benchmarks.results.readings import Readings
from utils.telemetry.records import Scope, Telemetry, Window

if TYPE_CHECKING:
    from utils.telemetry.series import AnyTick

COUNTED = frozenset({"cpu_s", "ecc_uncorrected", "remapped_rows"})
CLOCK = frozenset({"clock_mhz", "utilisation"})
PROCESSES = frozenset({"processes"})
CounterKey = tuple[str, str, str]  # source, device, quantity


@dataclass(frozen=True)
class Growth:
    """By how much a counter grew, and in how many seconds."""

    amount: float
    seconds: float


class Counters:
    """The first and the last reading of counters in a window."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._first: dict[tuple[str, tuple[str, ...], str], AnyTick] = {}
        self._last: dict[tuple[str, tuple[str, ...], str], AnyTick] = {}

    def take(self, tick: AnyTick) -> None:
        """One more tick, in any order."""
        if not self._window.start_ms <= tick.time_ms <= self._window.end_ms:
            return
        for name in COUNTED & tick.readings.keys():
            key = (tick.source, tuple(tick.devices), name)
            if tick.time_ms < self._first.setdefault(key, tick).time_ms:
                self._first[key] = tick
            if tick.time_ms >= self._last.setdefault(key, tick).time_ms:
                self._last[key] = tick

    def growths(self) -> Mapping[CounterKey, Growth]:
        """Of those that were read at both ends, and did not go back."""
        growths = {}
        for (source, devices, name), first in self._first.items():
            last = self._last[source, devices, name]
            for place, device in enumerate(devices):
                begin, end = first.readings[name][place], last.readings[name][place]
                if begin is not None and end is not None and 0 <= begin <= end:
                    seconds = (last.time_ms - first.time_ms) / 1000
                    growths[source, device, name] = Growth(end - begin, seconds)
        return growths


@dataclass
class NodeReadings:
    """training: all of it. before: until the first rank was started. early, late: the second and the last quarter."""

    training: Readings
    before: Readings
    early: Readings
    late: Readings
    counters: Counters
    accelerators: Collection[str] = field(default_factory=list)

    @classmethod
    def over(cls, training: Window, ranks_start_ms: float | None, wanted: Collection[str]) -> NodeReadings:
        """wanted: the quantities of which the whole training is summed up."""
        start, quarter = training.start_ms, (training.end_ms - training.start_ms) // 4
        return cls(
            Readings(training, PROCESSES.union(wanted)),
            Readings(Window(0, int(ranks_start_ms or 0) - 1), PROCESSES | CLOCK),
            Readings(Window(start + quarter, start + 2 * quarter), CLOCK),
            Readings(Window(start + 3 * quarter, training.end_ms), CLOCK),
            Counters(training),
        )

    def take(self, tick: AnyTick) -> None:
        """One more tick, in any order."""
        for each in (self.training, self.before, self.early, self.late, self.counters):
            each.take(tick)

    def end(self, telemetry: Telemetry) -> None:
        """All has been read."""
        self.accelerators = telemetry.with_scope(Scope.ACCELERATOR)

    def is_accelerator(self, source: str) -> bool:
        """Whether a source is one of accelerators."""
        return source in self.accelerators
