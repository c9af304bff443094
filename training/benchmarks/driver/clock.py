"""The clock of a run: how long each phase took, on a monotonic clock.

A phase's begin and end are read after the device has finished its work; between them nothing waits for
the device on the clock's account.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Times:
    """Seconds. `wait` is the part of the training loop in which the device had no data to work on."""

    init: float
    train: float
    evaluation: float
    wait: float
    time_to_target: float | None
    checkpoint: float = 0.0

    @property
    def no_evaluation(self) -> float:
        """Training without its evaluations and without the saving of checkpoints."""
        return self.train - self.evaluation - self.checkpoint

    @property
    def pure_compute(self) -> float:
        """The same without waiting for data."""
        return self.no_evaluation - self.wait


class PhaseClock:
    """Adds up the seconds spent in each phase.

    Args:
        synchronize: waits until the device has finished; called at each phase's begin and end.
        now: a monotonic clock in seconds (replaced in tests).
    """

    def __init__(self, synchronize: Callable[[], None], now: Callable[[], float] = time.monotonic) -> None:
        self._synchronize = synchronize
        self._now = now
        self._seconds: dict[str, float] = {}
        self._begun: dict[str, float] = {}

    def begin(self, phase: str, at: float | None = None) -> None:
        """Start a phase, `at` an earlier reading of the same clock where one was taken."""
        if at is None:
            self._synchronize()
            at = self._now()
        self._begun[phase] = at

    def end(self, phase: str) -> float:
        """End a phase; returns the seconds since its begin."""
        self._synchronize()
        seconds = self._now() - self._begun.pop(phase)
        self._seconds[phase] = self.seconds(phase) + seconds
        return seconds

    @contextmanager
    def phase(self, phase: str) -> Iterator[None]:
        """A phase around a block of code."""
        self.begin(phase)
        yield
        self.end(phase)

    def seconds(self, phase: str) -> float:
        """Total of a phase's ended spells."""
        return self._seconds.get(phase, 0.0)

    def running(self, phase: str) -> float:
        """Seconds since the begin of a phase that still runs. Does not wait for the device."""
        return self._now() - self._begun[phase]

    def add(self, phase: str, seconds: float) -> None:
        """Count seconds that were measured elsewhere."""
        self._seconds[phase] = self.seconds(phase) + seconds

    def now(self) -> float:
        """The clock's reading. Does not wait for the device."""
        return self._now()
