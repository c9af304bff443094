"""The measurement loop: warm up until the rate is steady, then measure windows of equal length.

All ranks work at the same time, so that they share power and cooling as they would in training. They talk to
each other between windows of the warm-up, to end it together, and in no window.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.driver.engine import Engine
from benchmarks.driver.operations import Operation, UnsupportedError
from benchmarks.driver.perf_log import PerfLog
from utils.events import EventName
from utils.figures import HIGHER, LOWER
from utils.parameters import MeasurementSettings

# Chips that differ by less than what the windows of one differ by cannot be told apart.
MOST_SPREAD = 0.05


@dataclass(frozen=True)
class Rates:
    """What one rank measured of an operation.

    Attributes:
        rates: of each window, in units of work per second.
        calls: of the operation in a window.
        seconds: of the median window.
        warmup_windows: how many came before.
        settled: whether the warm-up ended because the rate was steady on every rank, and not at its cap.
    """

    rates: tuple[float, ...]
    calls: int
    seconds: float
    warmup_windows: int
    settled: bool

    @property
    def median(self) -> float:
        """The rate."""
        return statistics.median(self.rates)

    @property
    def spread(self) -> float:
        """Interquartile range of the windows' rates, as a part of their median."""
        lower, _, upper = statistics.quantiles(self.rates, n=4, method="inclusive")
        return (upper - lower) / self.median


@dataclass(frozen=True)
class Measured:
    """An operation's rates on every rank, by rank; none where it is `unsupported`, which says why."""

    operation: Operation
    ranks: tuple[Rates, ...] = ()
    unsupported: str = ""

    @property
    def slowest(self) -> int:
        """The rank with the lowest median."""
        return min(range(len(self.ranks)), key=lambda rank: self.ranks[rank].median)

    @property
    def rate(self) -> float:
        """Of the slowest rank: what holds up all others where they work together."""
        return self.ranks[self.slowest].median

    @property
    def caveat(self) -> str:
        """Why its rate is to be marked, or nothing."""
        if not self.ranks:
            return ""
        if not self.ranks[0].settled:
            return "the rate was not steady after the warm-up"
        spread = self.ranks[self.slowest].spread
        return f"the windows did not agree: a spread of {spread:.0%}" if spread > MOST_SPREAD else ""

    def figures(self) -> dict[str, dict[str, Any]]:
        """The rate and its spread, as they stand in FINISHED; nothing where it is unsupported."""
        if self.unsupported:
            return {}
        operation, slowest = self.operation, self.ranks[self.slowest]
        shared = {"window": self._window()}
        rate = {
            **shared,
            "value": self.rate,
            "unit": f"{operation.unit}/s",
            "better": HIGHER,
            "definition": operation.definition,
        }
        spread = {
            **shared,
            "value": slowest.spread,
            "unit": "1",
            "better": LOWER,
            "definition": f"interquartile range / median of {operation.name} over its windows",
        }
        more = {"peak": operation.peak, "caveat": self.caveat}
        rate |= {key: value for key, value in more.items() if value}
        return {operation.name: rate, f"{operation.name}_spread": spread}

    def details(self) -> dict[str, Any]:
        """Every rank's rates, as plain data."""
        return {"unit": f"{self.operation.unit}/s", "ranks": [asdict(rates) for rates in self.ranks]}

    def notes(self, settings: MeasurementSettings) -> list[str]:
        """What a reader of the figures must know."""
        name = self.operation.name
        if self.unsupported:
            return [f"{name} is left out: {self.unsupported}"]
        if self.ranks[0].settled:
            return []
        return [
            f"{name}: the rate was not steady within {settings.warmup_agreement:.0%} after "
            f"{self.ranks[0].warmup_windows} windows of warm-up; it was measured all the same"
        ]

    def _window(self) -> str:
        rates = self.ranks[self.slowest]
        text = f"median of {len(rates.rates)} windows of {rates.seconds:.3g} s ({rates.calls} calls)"
        if not rates.settled:
            text += ", not steady after the warm-up"
        if len(self.ranks) > 1:
            fastest = max(rates.median for rates in self.ranks)
            text += f"; rank {self.slowest}, the slowest of {len(self.ranks)} (the fastest: {fastest:.4g})"
        return text


class MeasurementLoop:
    """Measures operations one after the other, on all ranks at once."""

    def __init__(self, settings: MeasurementSettings, engine: Engine[Any], perf_log: PerfLog) -> None:
        self.settings = settings
        self.engine = engine
        self.perf_log = perf_log
        self._warm_at = 0.0  # the clock when the last operation's warm-up had ended

    def run(self, operations: Sequence[Operation]) -> list[Measured]:
        """What each came to. Every rank calls this with the same operations."""
        self.engine.group.barrier()
        self.perf_log.write(EventName.TRAIN_START)
        results = [
            self._measured(number, operation, len(operations))
            for number, operation in enumerate(operations, 1)
        ]
        self.perf_log.write(EventName.TRAIN_END, {"global_steps": len(operations)})
        return results

    def _measured(self, number: int, operation: Operation, count: int) -> Measured:
        """An operation is a step to whoever watches, and its rate the metric."""
        place = {"global_steps": number, "max_steps": count, "metric": operation.name}
        self.perf_log.write(EventName.STEP_BEGIN, place)
        begin = time.monotonic()
        result = self._result(operation)
        value = {operation.name: None if result.unsupported else result.rate, "unit": f"{operation.unit}/s"}
        warm_up = {"warm_up_time": None if result.unsupported else self._warm_at - begin}
        remarks = {"unsupported": result.unsupported or None, "caveat": result.caveat or None}
        self.perf_log.write(EventName.STEP_END, {**place, **value, **warm_up, **remarks})
        return result

    def _result(self, operation: Operation) -> Measured:
        try:
            call, reason = operation.start(), ""
        except UnsupportedError as error:
            call, reason = None, error.message
        reasons = self.engine.group.gather(reason)
        if call is None or any(reasons):
            return Measured(operation, unsupported=_reason(reasons))
        return Measured(operation, tuple(self.engine.group.gather(self._rates(operation, call))))

    def _rates(self, operation: Operation, call: Callable[[], object]) -> Rates:
        self.engine.group.barrier()
        calls = self._calls_a_window(call)

        def window() -> float:
            return operation.work * calls / self._seconds(call, calls)

        warmup, settled = self._warm_up(window)
        self._warm_at = time.monotonic()
        rates = tuple(window() for _ in range(self.settings.windows))
        seconds = operation.work * calls / statistics.median(rates)
        return Rates(rates, calls, seconds, warmup, settled)

    def _calls_a_window(self, call: Callable[[], object]) -> int:
        """As many as take about `window_seconds`. The first call of all is not counted: it may compile."""
        self._seconds(call, 1)
        calls, seconds = 1, self._least_seconds(call, 1)
        while seconds < self.settings.window_seconds / 4:
            calls *= 4
            seconds = self._least_seconds(call, calls)
        return max(1, round(calls * self.settings.window_seconds / seconds))

    def _least_seconds(self, call: Callable[[], object], calls: int) -> float:
        """Of three times: whatever else the machine does makes one of them longer."""
        return min(self._seconds(call, calls) for _ in range(3))

    def _warm_up(self, window: Callable[[], float]) -> tuple[int, bool]:
        """How many windows it took, and whether the rate was steady then on every rank."""
        rates: list[float] = []
        settled = False
        while not settled and len(rates) < self.settings.max_warmup_windows:
            rates.append(window())
            settled = self.engine.group.max_of([float(not self._is_steady(rates))]) == [0.0]
        return len(rates), settled

    def _is_steady(self, rates: Sequence[float]) -> bool:
        last = rates[-self.settings.warmup_windows :]
        enough = len(last) == self.settings.warmup_windows
        return enough and max(last) - min(last) <= self.settings.warmup_agreement * max(last)

    def _seconds(self, call: Callable[[], object], calls: int) -> float:
        def work() -> None:
            for _ in range(calls):
                call()

        seconds: float = self.engine.device.timed(work)
        return seconds


def _reason(reasons: Sequence[str]) -> str:
    """Why an operation is left out, of what each rank says; chips that are alike say the same."""
    without = [rank for rank, reason in enumerate(reasons) if reason]
    only = "" if len(without) == len(reasons) else f"rank {without[0]} of {len(reasons)} alone: "
    return only + reasons[without[0]]


def measured_values(
    results: Sequence[Measured], settings: MeasurementSettings, engine: Engine[Any]
) -> dict[str, Any]:
    """What FINISHED says of a measurement, but for its times."""
    done = [result for result in results if not result.unsupported]
    return {
        "kind": settings.kind,
        "world_size": engine.world_size,
        "figures": {name: figure for result in done for name, figure in result.figures().items()},
        "operations": {result.operation.name: result.details() for result in done},
        "notes": [note for result in results for note in result.notes(settings)],
    }
