"""Send an image from one host to others: one stream, through this machine, that every target takes in as it arrives."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial

from run_benchmarks.images.store import ImageStore
from run_benchmarks.stages.fan_out import errors_of, on_all
from run_benchmarks.stages.image_archive import ImageArchive
from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError

Taker = Callable[[AsyncIterator[bytes]], Awaitable[None]]


class Counter:
    """How much of an archive was sent so far, to be looked at meanwhile, and what it was."""

    def __init__(self) -> None:
        self.bytes = 0
        self._digest = hashlib.sha256()

    def take(self, chunk: bytes) -> None:
        """So much more."""
        self.bytes += len(chunk)
        self._digest.update(chunk)

    @property
    def sha256(self) -> str:
        """Of what was sent so far, hexadecimal."""
        return self._digest.hexdigest()


async def stream_image(
    store: ImageStore, source: Transport, targets: Sequence[Transport], tag: str, sent: Counter
) -> dict[str, FlagPerfError]:
    """Send `tag` from `source` to `targets`, which load it while it arrives; see `stream_archive`."""
    takers = {target.host: partial(store.import_, target) for target in targets}
    return await stream_archive(store, source, takers, tag, sent)


async def stream_archive(
    store: ImageStore, source: Transport, takers: Mapping[str, Taker], tag: str, sent: Counter
) -> dict[str, FlagPerfError]:
    """Send `tag` from `source` to hosts, each of which has a taker; what is on its way is counted in `sent`.

    Returns:
        The hosts that did not get it, with the reason. A slow host slows the others, a lost one does not.

    Raises:
        ImageArchiveError: what the source sends would replace other images; of that nothing is passed on.
        FlagPerfError: the source could not hand it out.
    """
    archive = ImageArchive(tag)
    queues: dict[str, asyncio.Queue[bytes | None]] = {host: asyncio.Queue(maxsize=64) for host in takers}
    loads = {host: asyncio.ensure_future(take(_chunks(queues[host]))) for host, take in takers.items()}

    async def give_to_all(chunk: bytes | None) -> None:
        archive.end() if chunk is None else archive.take(chunk)
        for host, queue in queues.items():
            await _put_unless_done(queue, chunk, loads[host])
        sent.take(chunk or b"")

    async def send() -> None:
        await store.export(source, tag, give_to_all)
        await give_to_all(None)

    sending = asyncio.ensure_future(send())
    loading = asyncio.ensure_future(on_all(list(loads), lambda host: loads[host]))
    try:
        await asyncio.wait({sending, loading}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
        errors = errors_of(await loading)
        if len(errors) < len(loads):  # else nobody is left to send it to
            await sending
    finally:
        # nobody may still be loading half an image when the round goes on
        tasks = (sending, loading, *loads.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return errors


async def _chunks(queue: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (chunk := await queue.get()) is not None:
        yield chunk


async def _put_unless_done(
    queue: asyncio.Queue[bytes | None], chunk: bytes | None, load: asyncio.Future[None]
) -> None:
    put = asyncio.create_task(queue.put(chunk))
    await asyncio.wait({put, load}, return_when=asyncio.FIRST_COMPLETED)
    put.cancel()
