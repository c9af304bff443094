"""The same image on every node of a case: three ways to get it there, and the proof that it is the same."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence

from run_benchmarks.stages.fan_out import errors_of, on_all, values_of
from run_benchmarks.stages.image_build import BUILD_TIMEOUT_S
from run_benchmarks.transports.base import Transport, checked
from utils.errors import FlagPerfError

# What is installed, whatever the image's timestamps: two builds of one Dockerfile never share an image ID.
SOFTWARE = "python3 -VV; python3 -m pip freeze --all 2>/dev/null; dpkg-query -W 2>/dev/null || rpm -qa | sort"


class DistributionError(FlagPerfError):
    """The image was made, but it did not reach every host of the case."""


class ImagesDifferError(FlagPerfError):
    """The hosts have images that are not the same."""


async def stream_image(
    source: Transport, targets: Sequence[Transport], engine: str, tag: str
) -> dict[str, FlagPerfError]:
    """Send `tag` from one host to the others, as one stream that every target loads while it arrives.

    Returns:
        The hosts that did not get it, with the reason. A slow host slows the others, a lost one does not.
    """
    queues: dict[str, asyncio.Queue[bytes | None]] = {t.host: asyncio.Queue(maxsize=64) for t in targets}
    loads = {t.host: asyncio.create_task(_load(t, engine, queues[t.host])) for t in targets}

    async def give_to_all(chunk: bytes | None) -> None:
        for host, queue in queues.items():
            await _put_unless_done(queue, chunk, loads[host])

    async def sink(chunk: bytes) -> None:
        await give_to_all(chunk)

    try:
        await checked(source, [engine, "save", tag], stdout=sink, timeout=BUILD_TIMEOUT_S)
        await give_to_all(None)
        results = await on_all(list(loads), lambda host: loads[host])
    finally:
        for load in loads.values():
            load.cancel()
        # nobody may still be loading half an image when the round goes on
        await asyncio.gather(*loads.values(), return_exceptions=True)
    return errors_of(results)


async def _load(transport: Transport, engine: str, queue: asyncio.Queue[bytes | None]) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        while (chunk := await queue.get()) is not None:
            yield chunk

    await checked(transport, [engine, "load"], stdin=chunks(), timeout=BUILD_TIMEOUT_S)


async def _put_unless_done(
    queue: asyncio.Queue[bytes | None], chunk: bytes | None, load: asyncio.Task[None]
) -> None:
    put = asyncio.create_task(queue.put(chunk))
    await asyncio.wait({put, load}, return_when=asyncio.FIRST_COMPLETED)
    put.cancel()


async def software_digest(transport: Transport, engine: str, tag: str) -> str:
    """A digest of what is installed in an image: interpreter, Python packages and system packages."""
    argv = [engine, "run", "--rm", "--entrypoint", "sh", tag, "-c", SOFTWARE]
    listed = await checked(transport, argv, timeout=300)
    return hashlib.sha256(listed.stdout.encode()).hexdigest()[:16]


async def assert_same_software(transports: Mapping[str, Transport], engine: str, tag: str) -> None:
    """Where every node built for itself, the IDs differ by their timestamps; what is installed may not.

    Raises:
        ImagesDifferError: a host's image holds other versions than the first one's.
    """
    results = await on_all(list(transports), lambda host: software_digest(transports[host], engine, tag))
    for error in errors_of(results).values():
        raise error
    digests = values_of(results)
    if len(set(digests.values())) > 1:
        listed = ", ".join(f"{host} {digest}" for host, digest in digests.items())
        raise ImagesDifferError(
            f"the nodes built {tag} with different software in it: {listed}",
            where=", ".join(digests),
            remedy="set IMAGE_DISTRIBUTION = 'stream' in test_conf.py: one node builds, the others get its image",
        )
