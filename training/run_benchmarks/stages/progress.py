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
# Of an output without end a log has its begin, as it comes, and its end, once it is over.
FIRST_BYTES, LAST_BYTES = 32 * 2**20, 2**20


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


class _Ends:
    """A log that an endless output does not make larger than FIRST_BYTES, and each time LAST_BYTES more."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._room = max(0, FIRST_BYTES - file.tell())
        self._last = bytearray()
        self._left_out = 0

    def put(self, output: bytes) -> None:
        self._write(output[: self._room])
        self._last += output[self._room :]
        self._room = max(0, self._room - len(output))
        over = max(0, len(self._last) - LAST_BYTES)
        self._left_out += over
        del self._last[:over]

    def close(self) -> None:
        if self._left_out:
            self._write(f"\n[FlagPerf] {self._left_out} bytes of this log were not kept\n".encode())
        self._write(self._last)

    def _write(self, output: bytes | bytearray) -> None:
        self._file.write(output)
        self._file.flush()


@contextmanager
def whole_lines(file: IO[bytes], hide: Callable[[str], str]) -> Iterator[Callable[[bytes], None]]:
    """What writes a command's output to `file` line by line, each as `hide` gives it: all, or of too much both ends."""
    rest, log = b"", _Ends(file)

    def hidden(output: bytes) -> bytes:
        return hide(output.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def take(chunk: bytes) -> None:
        nonlocal rest
        output = rest + chunk
        end = max(output.rfind(b"\n"), output.rfind(b"\r")) + 1
        log.put(hidden(output[:end]))
        rest = output[end:]
        if len(rest) > LONGEST_LINE:
            rest = hidden(rest)
            log.put(rest[:-LONGEST_SECRET])
            rest = rest[-LONGEST_SECRET:]

    try:
        yield take
    finally:
        log.put(hidden(rest))
        log.close()


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
