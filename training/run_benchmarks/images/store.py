"""The image store of a container engine: where a host keeps the images that its units run in."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timezone

from pydantic import AwareDatetime, NonNegativeInt, TypeAdapter, ValidationError

from run_benchmarks.images.build import (
    BUILD_TIMEOUT_S,
    LIST_SOFTWARE,
    LIST_VARIABLES,
    BuildSite,
    layer_argvs,
    listing_unit,
    run_logged,
)
from run_benchmarks.images.exposed import refuse_exposed
from run_benchmarks.images.layers import ImagePlan
from run_benchmarks.images.pip_handover import settings_on_host
from run_benchmarks.images.unfinished import build_mark
from run_benchmarks.plan.handover import PROXIES
from run_benchmarks.plan.pip_record import PipSettings
from run_benchmarks.runtimes.base import Unit
from run_benchmarks.runtimes.engine import Engine
from run_benchmarks.runtimes.submounts import with_submounts
from run_benchmarks.stages.work_folder import ENTER_OWN, STILL_OWN, in_work_folder
from run_benchmarks.transports.base import WHOLE_BYTES, ByteSink, CommandError, Transport, checked, exports
from utils.errors import FlagPerfError
from utils.numbers import whole

# The image's ID, and behind it the digests by which registries have it.
IMAGE_FORMAT = "{{.Id}}{{range .RepoDigests}} {{.}}{{end}}"
IMAGE_ID = re.compile(r"[a-zA-Z0-9][-\w.:]{0,127}", re.ASCII)
# A tag as `plan_image` makes it (12 digits until December 2026), whatever registry is before it.
OWN_TAG = re.compile(
    r"(?:[\w.:/-]{1,200}/)?flagperf/[a-z0-9._/-]{1,100}:[0-9a-f]{12}(?:[0-9a-f]{20})?", re.ASCII
)
OWN_LABEL = "flagperf.layer"
# $0: the work folder; $1: a file in it; then a command that reads it.
READ_FROM = f'{ENTER_OWN}exec <"./$1"; shift; exec "$@"'
OWN_FORMAT = "[{{json .RepoTags}},{{json .Created}},{{.Size}}]"
DIGEST = re.compile(r"[^\s@]{1,256}@[a-z0-9]{1,16}:[0-9a-f]{32,128}", re.ASCII)
MOST_DIGESTS = 8
LISTING_S = 300.0
_OWN: TypeAdapter[tuple[list[str] | None, datetime, int]] = TypeAdapter(
    tuple[list[str] | None, AwareDatetime, NonNegativeInt]
)


@dataclass(frozen=True)
class StoredImage:
    """An image on a host; digests: `name@sha256:...` by which registries have it, none of one that was only built."""

    id: str
    digests: tuple[str, ...] = ()


@dataclass(frozen=True)
class OwnImage:
    """An image that FlagPerf made: one of its own tags, its bytes (layers that it shares among them), and its age."""

    tag: str
    size: int
    age_s: float


class ImageStore:
    """Images by the engine's command line. Where a command fails, CommandError; none is repeated by itself."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def kept_as(self, tag: str) -> str:
        """What the image is called among those that a host keeps."""
        return tag

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

    async def own_images(self, transport: Transport) -> list[OwnImage]:
        """Those images of the host that have both our label and a tag of ours, the oldest last.

        The label alone says nothing: who builds upon one of ours inherits it.
        """
        listing = (self.engine.command, "image", "ls", "--quiet", "--no-trunc", f"--filter=label={OWN_LABEL}")
        ids = (await checked(transport, listing, timeout=LISTING_S)).whole_stdout().split()
        if not ids:
            return []
        argv = (self.engine.command, "image", "inspect", "--format", OWN_FORMAT, *dict.fromkeys(ids))
        listed = await transport.run(argv, timeout=LISTING_S)  # fails where one has vanished meanwhile
        images = [image for line in listed.whole_stdout().splitlines() for image in _own_images(line)]
        return sorted(images, key=lambda image: (image.age_s, image.tag))

    async def any_tags(self, transport: Transport) -> list[str]:
        """Tags of images of any kind that are on the host, the newest first."""
        listing = (self.engine.command, "image", "ls", "--format", "{{.Repository}}:{{.Tag}}")
        listed = await checked(transport, listing, timeout=LISTING_S)
        return [
            tag for tag in listed.whole_stdout().split() if "<none>" not in tag and not tag.startswith("-")
        ]

    async def remove(self, transport: Transport, tag: str) -> None:
        """Take a tag of ours away, and with the last one the image; what a container uses, the engine keeps."""
        if not OWN_TAG.fullmatch(tag):
            raise FlagPerfError(f"{tag!r} is no image of FlagPerf's", where=transport.host)
        await checked(transport, (self.engine.command, "image", "rm", tag), timeout=LISTING_S)

    async def size(self, transport: Transport, tag: str) -> int | None:
        """The bytes of an image that is on the host; None where the engine does not say."""
        argv = (self.engine.command, "image", "inspect", "--format", "{{.Size}}", tag)
        return whole((await transport.run(argv, timeout=60)).stdout.strip())

    async def build(
        self, transport: Transport, site: BuildSite, image: ImagePlan, pip: PipSettings, log: ByteSink
    ) -> None:
        """Make every layer of `image` that the host lacks; what the builds print goes to `log`."""
        async with settings_on_host(transport, site, pip, image.secrets) as settings:
            mounts = await with_submounts(transport, self.engine, settings)
            for below, layer in zip((None, *image.layers), image.layers, strict=False):
                if await self.image(transport, layer.tag) is None:
                    # the code, pip's settings and secrets lie there, and the layer before may have taken hours
                    await in_work_folder(transport, site.work, "", timeout=LISTING_S, enter=STILL_OWN)
                    await log(f"--- {layer.kind}: {layer.tag}\n".encode())
                    names = (*image.proxies, *image.mounted) if below is None else ()
                    variables = {name: image.secrets[name] for name in names}
                    if below is None:
                        variables |= build_mark(site)
                    proxies = None if below is None else await self._proxies(transport, site, image)
                    for argv in layer_argvs(self.engine, site, layer, below, image, mounts):
                        await run_logged(transport, argv, log, variables, proxies)
                    if below is None:
                        await refuse_exposed(transport, self.engine, layer, image)

    async def export(self, transport: Transport, tag: str, sink: ByteSink) -> None:
        """Hand the image to `sink`, as the archive that the engine saves."""
        await checked(transport, (self.engine.command, "save", tag), stdout=sink, timeout=BUILD_TIMEOUT_S)

    async def import_(self, transport: Transport, archive: AsyncIterator[bytes]) -> None:
        """Load an archive while it arrives."""
        await checked(transport, (self.engine.command, "load"), stdin=archive, timeout=BUILD_TIMEOUT_S)

    async def import_file(self, transport: Transport, work: str, file: str) -> None:
        """Load an archive that lies in the host's work folder."""
        argv = ("sh", "-c", READ_FROM, work, file, self.engine.command, "load")
        await checked(transport, argv, timeout=BUILD_TIMEOUT_S)

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


def _own_images(line: str) -> list[OwnImage]:
    """The images of a line of OWN_FORMAT; none where it is not one, as a host may print anything."""
    try:
        tags, created, size = _OWN.validate_json(line)
    except ValidationError:
        return []
    age_s = (datetime.now(timezone.utc) - created).total_seconds()
    return [OwnImage(tag, size, age_s) for tag in tags or () if OWN_TAG.fullmatch(tag)]
