"""FAKE of the machine's clock, at the border to the module `time`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class HandClock:
    """Time, in seconds, that passes only where a test or what it tests says so: nothing depends on the machine."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return round(self.now * 1e9)

    def wait(self, seconds: float) -> bool:
        """As threading.Event.wait, for an event that is never set."""
        self.now += seconds
        return False
