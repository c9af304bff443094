"""Move bytes between a command's pipes and its caller, at the pace of the slower of the two."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from run_benchmarks.transports.base import ByteSink

CHUNK_BYTES = 256 * 1024


class ByteReader(Protocol):
    """The reading end of a pipe: asyncio's StreamReader, or asyncssh's SSHReader of bytes."""

    async def read(self, n: int, /) -> bytes:
        """Up to `n` bytes; none at the end."""
        ...


class ByteWriter(Protocol):
    """The writing end of a pipe: asyncio's StreamWriter, or asyncssh's SSHWriter of bytes."""

    def write(self, data: bytes, /) -> Any:
        """Queue `data`."""
        ...

    async def drain(self) -> None:
        """Wait until the other side has taken enough of what is queued."""
        ...

    def write_eof(self) -> Any:
        """End the stream."""
        ...


async def feed(writer: ByteWriter, source: bytes | AsyncIterator[bytes]) -> None:
    """Write `source` to its end. A command that reads no further is no error: its exit code tells."""
    async for chunk in _chunks(source):
        try:
            writer.write(chunk)
            await writer.drain()
        except (BrokenPipeError, ConnectionResetError):
            return
    with suppress(BrokenPipeError, ConnectionResetError):
        writer.write_eof()


async def collect(reader: ByteReader, sink: ByteSink | None = None) -> bytes:
    """Read to the end; what was read, or nothing where `sink` took it."""
    kept = bytearray()
    while chunk := await reader.read(CHUNK_BYTES):
        if sink is None:
            kept += chunk
        else:
            await sink(chunk)
    return bytes(kept)


async def together(*steps: Coroutine[Any, Any, Any]) -> list[Any]:
    """Run all `steps` at once; the first that fails ends the others, which is what gather() does not do."""
    tasks = [asyncio.ensure_future(step) for step in steps]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def while_feeding(feeding: Coroutine[Any, Any, None], main: Coroutine[Any, Any, Any]) -> Any:
    """The result of `main`, with `feeding` beside it: it ends with `main`, and its failure ends `main`."""
    feeder = asyncio.ensure_future(feeding)
    work = asyncio.ensure_future(main)
    try:
        await asyncio.wait({feeder, work}, return_when=asyncio.FIRST_COMPLETED)
        if feeder.done() and not work.done():
            feeder.result()
        return await work
    finally:
        for task in (feeder, work):
            task.cancel()
        await asyncio.gather(feeder, work, return_exceptions=True)


async def _chunks(source: bytes | AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if isinstance(source, bytes):
        for start in range(0, len(source), CHUNK_BYTES):
            yield source[start : start + CHUNK_BYTES]
    else:
        async for chunk in source:
            yield chunk
