"""The image store of a container engine."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import AsyncIterator

from run_benchmarks.images.base import BuildSite
from run_benchmarks.images.build import BUILD_TIMEOUT_S, build_layer
from run_benchmarks.images.layers import ImagePlan
from run_benchmarks.images.pip_handover import pip_on_host
from run_benchmarks.plan.records import PipSettings
from run_benchmarks.runtimes.engine import Engine
from run_benchmarks.transports.base import ByteSink, CommandError, Transport, checked

# What is installed, whatever the image's timestamps: two builds of one Dockerfile never share an image ID.
SOFTWARE = "python3 -VV; python3 -m pip freeze --all 2>/dev/null; dpkg-query -W 2>/dev/null || rpm -qa | sort"


class EngineImageStore:
    """Images by the engine's command line."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def image_id(self, transport: Transport, tag: str) -> str | None:
        """The ID of the image `tag` on the host, or None (see ImageStore)."""
        completed = await transport.run(self.engine.image_id(tag), timeout=60)
        if completed.ok:
            return completed.stdout.strip()
        if self.engine.lacks_image(completed):
            return None
        listing = shlex.join((*self.engine.words, "image", "ls"))
        raise CommandError(
            completed, self.engine.remedy(completed) or f"check that `{listing}` works on this host"
        )

    async def build(
        self, transport: Transport, site: BuildSite, image: ImagePlan, pip: PipSettings, log: ByteSink
    ) -> None:
        """Make every layer that the host lacks (see ImageStore)."""
        async with pip_on_host(transport, site, pip) as mounts:
            for below, layer in zip((None, *image.layers), image.layers, strict=False):
                if await self.image_id(transport, layer.tag) is None:
                    await log(f"--- {layer.kind}: {layer.tag}\n".encode())
                    await build_layer(transport, self.engine, site, layer, below, image, mounts, log)

    async def export(self, transport: Transport, tag: str, sink: ByteSink) -> None:
        """Hand the image to `sink`, as the archive that the engine saves."""
        await checked(transport, self.engine.save(tag), stdout=sink, timeout=BUILD_TIMEOUT_S)

    async def import_(self, transport: Transport, archive: AsyncIterator[bytes]) -> None:
        """Load an archive while it arrives."""
        await checked(transport, self.engine.load(), stdin=archive, timeout=BUILD_TIMEOUT_S)

    async def pull(self, transport: Transport, tag: str) -> None:
        """Get the image from its registry."""
        await checked(transport, self.engine.pull(tag), timeout=BUILD_TIMEOUT_S)

    async def push(self, transport: Transport, tag: str) -> None:
        """Bring the image to its registry."""
        login = shlex.join((*self.engine.words, "login"))
        remedy = f"log in on {transport.host}: {login}, and check IMAGE_REGISTRY in test_conf.py"
        await checked(transport, self.engine.push(tag), remedy=remedy, timeout=BUILD_TIMEOUT_S)

    async def software_digest(self, transport: Transport, tag: str) -> str:
        """A digest of the interpreter, Python packages and system packages."""
        listed = await checked(transport, self.engine.print_from(tag, SOFTWARE), timeout=300)
        return hashlib.sha256(listed.stdout.encode()).hexdigest()[:16]

    def remove_command(self, tag: str) -> str:
        """`docker image rm TAG`."""
        return shlex.join(self.engine.remove_image(tag))
