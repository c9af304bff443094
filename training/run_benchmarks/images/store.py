"""The image store of a container engine: where a host keeps the images that its units run in."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import AsyncIterator
from dataclasses import dataclass

from run_benchmarks.images.build import (
    BUILD_TIMEOUT_S,
    LIST_SOFTWARE,
    LIST_VARIABLES,
    BuildSite,
    layer_argvs,
    listing_unit,
    run_logged,
)
from run_benchmarks.images.layers import ImagePlan
from run_benchmarks.images.pip_handover import settings_on_host
from run_benchmarks.plan.handover import PROXIES
from run_benchmarks.plan.records import PipSettings
from run_benchmarks.runtimes.base import Unit
from run_benchmarks.runtimes.engine import Engine
from run_benchmarks.runtimes.submounts import with_submounts
from run_benchmarks.transports.base import WHOLE_BYTES, ByteSink, CommandError, Transport, checked, exports
from utils.numbers import whole

# The image's ID, and behind it the digests by which registries have it.
IMAGE_FORMAT = "{{.Id}}{{range .RepoDigests}} {{.}}{{end}}"
IMAGE_ID = re.compile(r"[a-zA-Z0-9][-\w.:]{0,127}", re.ASCII)
DIGEST = re.compile(r"[^\s@]{1,256}@[a-z0-9]{1,16}:[0-9a-f]{32,128}", re.ASCII)
MOST_DIGESTS = 8
LISTING_S = 300.0


@dataclass(frozen=True)
class StoredImage:
    """An image on a host; digests: `name@sha256:...` by which registries have it, none of one that was only built."""

    id: str
    digests: tuple[str, ...] = ()


class ImageStore:
    """Images by the engine's command line. Where a command fails, CommandError; none is repeated by itself."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    async def image(self, transport: Transport, tag: str) -> StoredImage | None:
        """The image `tag` on the host, or None where it has no such image."""
        completed = await transport.run(
            (self.engine.command, "image", "inspect", "--format", IMAGE_FORMAT, tag), timeout=60
        )
        if completed.ok:
            image_id, *digests = completed.stdout.split(maxsplit=MOST_DIGESTS + 1)[: MOST_DIGESTS + 1] or [""]
            if not IMAGE_ID.fullmatch(image_id):
                raise CommandError(
                    completed, f"see what this command prints on {transport.host}: no image's ID"
                )
            return StoredImage(image_id, tuple(filter(DIGEST.fullmatch, digests)))
        if self.engine.lacks_image(completed):
            return None
        listing = shlex.join((self.engine.command, "image", "ls"))
        raise CommandError(
            completed, self.engine.remedy(completed) or f"check that `{listing}` works on this host"
        )

    async def size(self, transport: Transport, tag: str) -> int | None:
        """The bytes of an image that is on the host; None where the engine does not say."""
        argv = (self.engine.command, "image", "inspect", "--format", "{{.Size}}", tag)
        return whole((await transport.run(argv, timeout=60)).stdout.strip())

    async def build(
        self, transport: Transport, site: BuildSite, image: ImagePlan, pip: PipSettings, log: ByteSink
    ) -> None:
        """Make every layer of `image` that the host lacks; what the builds print goes to `log`."""
        async with settings_on_host(transport, site, pip, image.secrets) as settings:
            mounts = await with_submounts(transport, settings)
            for below, layer in zip((None, *image.layers), image.layers, strict=False):
                if await self.image(transport, layer.tag) is None:
                    await log(f"--- {layer.kind}: {layer.tag}\n".encode())
                    names = (*image.proxies, *image.mounted) if below is None else ()
                    variables = {name: image.secrets[name] for name in names}
                    proxies = None if below is None else await self._proxies(transport, site, image)
                    for argv in layer_argvs(self.engine, site, layer, below, image, mounts):
                        await run_logged(transport, argv, log, variables, proxies)

    async def export(self, transport: Transport, tag: str, sink: ByteSink) -> None:
        """Hand the image to `sink`, as the archive that the engine saves."""
        await checked(transport, (self.engine.command, "save", tag), stdout=sink, timeout=BUILD_TIMEOUT_S)

    async def import_(self, transport: Transport, archive: AsyncIterator[bytes]) -> None:
        """Load an archive while it arrives."""
        await checked(transport, (self.engine.command, "load"), stdin=archive, timeout=BUILD_TIMEOUT_S)

    async def pull(self, transport: Transport, tag: str, log: ByteSink) -> None:
        """Get the image from its registry; what the engine prints meanwhile goes to `log`."""
        await checked(transport, (self.engine.command, "pull", tag), stdout=log, timeout=BUILD_TIMEOUT_S)

    async def push(self, transport: Transport, tag: str, log: ByteSink) -> None:
        """Bring the image to its registry; what the engine prints meanwhile goes to `log`."""
        login = shlex.join((self.engine.command, "login"))
        remedy = f"log in on {transport.host}: {login}, and check IMAGE_REGISTRY in test_conf.py"
        argv = (self.engine.command, "push", tag)
        await checked(transport, argv, remedy=remedy, stdout=log, timeout=BUILD_TIMEOUT_S)

    async def software_digest(self, transport: Transport, site: BuildSite, tag: str) -> str:
        """A digest of what is installed in an image: interpreter, Python packages and system packages."""
        listed = await self._listed(transport, listing_unit(site, tag, LIST_SOFTWARE))
        return hashlib.sha256(listed.encode()).hexdigest()[:16]

    def remove_command(self, tag: str) -> str:
        """What a user types on a host to be rid of an image."""
        return shlex.join((self.engine.command, "image", "rm", tag))

    async def _proxies(self, transport: Transport, site: BuildSite, image: ImagePlan) -> bytes:
        """What sets the proxies that the engine, or the image's Dockerfile, gives to containers; none is in a layer."""
        unit = listing_unit(site, image.layers[0].tag, LIST_VARIABLES)
        listed = await self._listed(transport, unit, proxies=True)
        pairs = (variable.partition("=")[::2] for variable in listed.split("\0"))
        return exports({name: value for name, value in pairs if name in PROXIES and value})

    async def _listed(self, transport: Transport, unit: Unit, *, proxies: bool = False) -> str:
        remove = self.engine.remove([unit.name])
        await transport.run(remove, timeout=LISTING_S)
        argv = self.engine.run_to_end(unit, proxies=proxies)
        listed = await checked(transport, argv, timeout=LISTING_S, held=WHOLE_BYTES)
        await transport.run(remove, timeout=LISTING_S)
        return listed.whole_stdout()
