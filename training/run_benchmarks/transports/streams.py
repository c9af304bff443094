"""Move bytes between a command's pipes and its caller, at the pace of the slower of the two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from run_benchmarks.transports.base import ByteSink, ByteSource

if TYPE_CHECKING:
    import asyncssh

    ByteReader = asyncio.StreamReader | asyncssh.SSHReader[bytes]
    ByteWriter = asyncio.StreamWriter | asyncssh.SSHWriter[bytes]

CHUNK_BYTES = 256 * 1024


async def exchange(feeding: Coroutine[Any, Any, None], *reading: Coroutine[Any, Any, Any]) -> list[Any]:
    """The results of `reading`, a command's output and end, with `feeding`, its input, beside it.

    The first that fails ends all others, which is what gather() does not do; feeding ends with the reading.
    """
    feeder, readers = asyncio.ensure_future(feeding), [asyncio.ensure_future(each) for each in reading]
    pending = {feeder, *readers}
    try:
        while not pending <= {feeder}:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        return [reader.result() for reader in readers]
    finally:
        for task in (feeder, *readers):
            task.cancel()
        await asyncio.gather(feeder, *readers, return_exceptions=True)


async def feed(writer: ByteWriter, source: ByteSource) -> None:
    """Write `source` to its end. A command that reads no further is no error: its exit code tells."""
    async for chunk in chunks(source):  # its own errors are none of the command's
        try:
            writer.write(chunk)
            await writer.drain()
        except (BrokenPipeError, ConnectionResetError):
            return
    with suppress(BrokenPipeError, ConnectionResetError):
        writer.write_eof()


async def collect(reader: ByteReader, sink: ByteSink) -> None:
    """Read to the end."""
    while chunk := await reader.read(CHUNK_BYTES):
        await sink(chunk)


async def chunks(source: ByteSource) -> AsyncIterator[bytes]:
    """What a command is to read, in parts that are not large."""
    if isinstance(source, bytes):
        for start in range(0, len(source), CHUNK_BYTES):
            yield source[start : start + CHUNK_BYTES]
    else:
        async for chunk in source:
            yield chunk
