"""A way to a port that takes longer: a proxy that keeps every byte for a while, where the kernel has no netem."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress

CHUNK = 2**16


@contextmanager
def delayed(host: str, port: int, seconds: float) -> Iterator[int]:
    """A port of this machine that leads to `host`'s, `seconds` away in each direction."""
    opened: Future[tuple[int, Callable[[], object]]] = Future()

    async def serve() -> None:
        over, loop = asyncio.Event(), asyncio.get_running_loop()
        async with await _server(host, port, seconds) as server:
            opened.set_result(
                (server.sockets[0].getsockname()[1], lambda: loop.call_soon_threadsafe(over.set))
            )
            await over.wait()

    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(asyncio.run, serve())
        own_port, end = opened.result(timeout=10)
        try:
            yield own_port
        finally:
            end()


async def _server(host: str, port: int, seconds: float) -> asyncio.Server:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(2 * seconds)  # the handshake
        there_reader, there_writer = await asyncio.open_connection(host, port)
        directions = _late(reader, there_writer, seconds), _late(there_reader, writer, seconds)
        await asyncio.gather(*directions, return_exceptions=True)

    return await asyncio.start_server(connected, "127.0.0.1", 0)


async def _late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Hand on what comes, each piece `seconds` after it came."""
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=1000)

    async def take() -> None:
        piece = b"-"
        while piece:
            piece = await reader.read(CHUNK)
            await pieces.put((loop.time() + seconds, piece))

    taking = asyncio.create_task(take())
    try:
        while True:
            at, piece = await pieces.get()
            await asyncio.sleep(at - loop.time())
            if not piece:
                break
            writer.write(piece)
            await writer.drain()
    finally:
        taking.cancel()
        with suppress(OSError):
            writer.close()
