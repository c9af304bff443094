"""A program on a host that listens at a port of its own choice, and prints which, as long as it is needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from run_benchmarks.transports.base import ByteSource, Completed, Transport
from utils.errors import FlagPerfError
from utils.numbers import whole

LONGEST_PRINTED = 100  # bytes in which the port stands
END_S = 5.0  # for a server that has done its work


class PrintedPort:
    """A sink for what the program prints: its port, where the first line is one."""

    def __init__(self) -> None:
        self.number: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._printed = bytearray()

    async def take(self, chunk: bytes) -> None:
        """The next part of its output."""
        if self.number.done() or len(self._printed) > LONGEST_PRINTED:
            return
        self._printed += chunk[:LONGEST_PRINTED]
        line, end, _ = self._printed.decode(errors="replace").partition("\n")
        number = whole(line.strip()) if end else None
        if number is not None and 0 < number < 2**16:
            self.number.set_result(number)


class NotServedError(FlagPerfError):
    """The program did not come to say where it listens."""


@asynccontextmanager
async def served_port(
    transport: Transport, argv: Sequence[str], stdin: ByteSource, start_s: float, limit_s: float
) -> AsyncIterator[int]:
    """The port of a program that is ended with the context, or after `limit_s` seconds, where it has not by itself.

    It has a moment to end by itself, unless the context ends with an error.

    Raises:
        NotServedError: it said none in `start_s` seconds, or ended before.
    """
    port = PrintedPort()
    server = asyncio.create_task(transport.run(argv, stdin=stdin, stdout=port.take, timeout=limit_s))
    try:
        either: set[asyncio.Future[Any]] = {port.number, server}
        await asyncio.wait(either, timeout=start_s, return_when=asyncio.FIRST_COMPLETED)
        if not port.number.done():
            raise NotServedError(_why(server), where=transport.host)
        yield port.number.result()
        await asyncio.wait({server}, timeout=END_S)
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)


def _why(server: asyncio.Task[Completed]) -> str:
    if not server.done():
        return "no answer in time"
    error = server.exception()
    return str(error) if error else server.result().last_lines(1) or "it ended"
