"""Lines of the log for work that takes long: one when it begins, one now and then while it goes on, one at its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import IO

from run_benchmarks.plan.redact import redact_text
from run_benchmarks.run_log import LOGGER

LINE_EVERY_S = 15.0
LONGEST_WORDS = 100  # characters
LONGEST_SEARCHED = 2**12  # bytes of a line that are searched for secrets, to show the first of its words
LONGEST_LINE = 2**16  # bytes that are kept back until their line has ended
LONGEST_SECRET = 2**14  # bytes: so many of a longer line are kept back still, where a secret may have begun


class LastWords:
    """A sink for a command's output that remembers the last line of it, and shows it as `hide` gives it."""

    def __init__(self, hide: Callable[[str], str] = str) -> None:
        self._hide = hide
        self._line = b""
        self._rest = b""

    async def take(self, chunk: bytes) -> None:
        """The next part of the output."""
        *lines, self._rest = (self._rest + chunk).replace(b"\r", b"\n").split(b"\n")
        del lines[:-LONGEST_WORDS]  # blank ones may end it
        self._line = next((line for line in reversed(lines) if line.strip()), self._line)
        self._rest = self._rest[:LONGEST_SEARCHED]

    def __str__(self) -> str:
        line = self._line[:LONGEST_SEARCHED].decode(errors="replace").strip()
        return self._hide(redact_text(line))[:LONGEST_WORDS]


@contextmanager
def whole_lines(file: IO[bytes], hide: Callable[[str], str]) -> Iterator[Callable[[bytes], None]]:
    """What writes a command's output to `file` line by line, each as `hide` gives it."""
    rest = b""

    def hidden(output: bytes) -> bytes:
        return hide(output.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def put(output: bytes) -> None:
        file.write(output)
        file.flush()

    def take(chunk: bytes) -> None:
        nonlocal rest
        output = rest + chunk
        end = max(output.rfind(b"\n"), output.rfind(b"\r")) + 1
        put(hidden(output[:end]))
        rest = output[end:]
        if len(rest) > LONGEST_LINE:
            rest = hidden(rest)
            put(rest[:-LONGEST_SECRET])
            rest = rest[-LONGEST_SECRET:]

    try:
        yield take
    finally:
        put(hidden(rest))


@asynccontextmanager
async def reported(what: str, how_far: Callable[[], object] = str) -> AsyncIterator[None]:
    """Log `what` is done as it begins and as long as it goes on, with `how_far` it has come.

    It is not reported as done where it ends with an error.
    """
    LOGGER.info(what)
    begin = time.monotonic()
    reporting = asyncio.create_task(_report(what, begin, how_far))
    try:
        yield
        LOGGER.info(f"{what}: done after {time.monotonic() - begin:.0f} s")
    finally:
        reporting.cancel()
        await asyncio.gather(reporting, return_exceptions=True)


async def _report(what: str, begin: float, how_far: Callable[[], object]) -> None:
    while True:
        await asyncio.sleep(LINE_EVERY_S)
        words = str(how_far())
        LOGGER.info(f"{what}: {time.monotonic() - begin:.0f} s{words and f', {words}'}")


def size_text(count: int | None) -> str:
    """Bytes in MiB or GiB; empty where nobody knows."""
    if count is None:
        return ""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
