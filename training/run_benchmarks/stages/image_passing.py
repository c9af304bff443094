"""Bring an image to many hosts that pass it on: one stream through this machine, looked at as it passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from run_benchmarks.hosts.base import Host
from run_benchmarks.images.build import BUILD_TIMEOUT_S
from run_benchmarks.images.store import ImageStore
from run_benchmarks.stages.image_stream import Counter, stream_archive
from run_benchmarks.stages.passing import Content, Place, Site, bring, keep
from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError


async def bring_image(
    store: ImageStore,
    source: Transport,
    hosts: Sequence[Host],
    tag: str,
    site: Site,
    sent: Counter,
    had: set[str],
) -> dict[str, FlagPerfError]:
    """Bring the image `tag` of `source` to `hosts`; none of them loads anything before all of it was looked at.

    Args:
        had: takes the names of those that have a copy, as they come to it.

    Returns:
        The hosts that have not loaded it, and why.

    Raises:
        ImageArchiveError: it would replace other images.
        FlagPerfError: the source could not hand it out.
    """

    async def fill(places: Sequence[Place]) -> tuple[Content, Mapping[str, FlagPerfError]]:
        takers = {place.host.name: partial(keep, place, limit_s=BUILD_TIMEOUT_S) for place in places}
        failed = await stream_archive(store, source, takers, tag, sent)
        return Content(sent.bytes, sent.sha256), failed

    async def use(place: Place) -> None:
        had.add(place.host.name)
        await store.import_file(place.host.transport, place.work, place.copy)

    room = 2 * (await store.size(source, tag) or 0)
    return await bring(tag, hosts, site, room, fill, use)
