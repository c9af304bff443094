"""The search's clock: it goes on while the controller is away, and also when the machine is started again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class SearchClock:
    """Seconds since the search began. Within one start of the machine they are of its monotonic clock.

    boot: names that start. zero_s: what the machine's clock showed when the search began; began_s: the wall clock.
    """

    boot: str
    zero_s: float
    began_s: float

    @classmethod
    def begin(cls) -> SearchClock:
        """A clock that stands at 0 now."""
        return cls(_boot(), _machine_s(), time.time())

    def again(self, seen_s: float) -> SearchClock:
        """The same for another process; where the machine was started since, by the wall clock and above `seen_s`."""
        if self.boot == _boot():
            return self
        return SearchClock(_boot(), _machine_s() - max(seen_s, time.time() - self.began_s), self.began_s)

    def now(self) -> float:
        """Seconds since the search began."""
        return _machine_s() - self.zero_s


def _machine_s() -> float:
    """Of the clock that goes on in a suspended machine too; every process of the machine reads the same."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _boot() -> str:
    return _BOOT_ID.read_text(encoding="ascii").strip()
