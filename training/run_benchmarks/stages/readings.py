"""What the hosts of one preflight read of their data: the same files once, and how far all of them have come."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from run_benchmarks.run_log import LOGGER

TOLD_EVERY_S = 30.0
GIB = 2**30


@dataclass(frozen=True)
class Reading:
    """What was read of files. sums: path -> SHA-256. began_s: when, in seconds since 1970 by the host's clock."""

    sums: Mapping[str, str]
    began_s: float


@dataclass
class Readings:
    """Shared by the hosts that are checked at once: files on a file system that they share are read by one of them."""

    _read: dict[str, Reading] = field(default_factory=dict)
    _turns: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    _wanted: int = 0
    _done: int = 0
    _told: float = field(default_factory=time.monotonic)

    async def once(self, files: str, read: Callable[[], Awaitable[Reading]]) -> Reading:
        """What these files hold, read by the first who asks; where that fails, by the next.

        Args:
            files: stands for them, by their stamps: hosts that see the same ones see the same files.
        """
        async with self._turns[files]:
            if files not in self._read:
                self._read[files] = await read()
            return self._read[files]

    def begin(self, size: int) -> None:
        """So many bytes more will be read."""
        self._wanted += size

    def advance(self, size: int) -> None:
        """So many bytes more have been read; now and then that is told."""
        self._done += size
        if time.monotonic() >= self._told + TOLD_EVERY_S:
            self._told = time.monotonic()
            LOGGER.info(
                f"data: {self._done / GIB:,.0f} of {self._wanted / GIB:,.0f} GiB compared with the manifests"
            )
