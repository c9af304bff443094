"""How far a host's clock is ahead of the controller's: the time from question to answer bounds the error."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError

ASK = ("date", "+%s.%N")
LONGEST_BOOT = 64  # characters of a boot's ID, a UUID
LATEST_S = 2.0**40  # nobody's clock says more, and milliseconds of it can be reckoned with exactly


@dataclass(frozen=True)
class ClockReading:
    """A host's clock is `offset_s` ahead of the controller's, +- `uncertainty_s`, when that says `time_s`.

    time_s: seconds since the epoch. The uncertainty is half the time that question and answer took: an error is no
    larger, whichever of the two was the slower.
    """

    time_s: float
    offset_s: float
    uncertainty_s: float

    def __str__(self) -> str:
        direction = "ahead of" if self.offset_s > 0 else "behind"
        return f"{abs(self.offset_s):,.3f} s {direction} the controller (+- {self.uncertainty_s:.3f} s)"

    def is_possible(self) -> bool:
        """Whether somebody's clock can have said so: a file that tells of it may be anybody's."""
        return max(map(abs, (self.time_s, self.offset_s, self.uncertainty_s))) <= LATEST_S


@dataclass(frozen=True)
class Uptime:
    """For how long a host has been up since it was booted, in seconds; boot: the ID of that boot."""

    boot: Annotated[str, Field(max_length=LONGEST_BOOT)]
    seconds: float


class NoTimeError(FlagPerfError):
    """A host answered, and not with a time."""


async def read_clock(transport: Transport, timeout_s: float, tries: int = 1) -> ClockReading:
    """The host's clock, by that one of `tries` answers which took the least time.

    Raises:
        NoTimeError: what the host answers is no time.
        FlagPerfError: it does not answer in time.
    """
    readings = [await _read_once(transport, timeout_s) for _ in range(tries)]
    return min(readings, key=lambda reading: reading.uncertainty_s)


async def _read_once(transport: Transport, timeout_s: float) -> ClockReading:
    begin, before = time.monotonic(), time.time()
    done = await transport.run(ASK, timeout=timeout_s)
    half_s = (time.monotonic() - begin) / 2  # of a clock that nobody sets meanwhile
    try:
        offset = float(done.stdout) - (before + half_s)
    except ValueError:
        offset = math.nan
    if not abs(offset) <= LATEST_S:
        raise NoTimeError(
            done.last_lines(1), where=transport.host, remedy="date gave no answer; look yourself"
        )
    return ClockReading(round(before + half_s, 6), round(offset, 6), round(half_s, 6))
