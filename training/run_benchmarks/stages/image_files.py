"""The image stage where images are files: made on this machine, once, and brought to each file system of the hosts."""

from __future__ import annotations

import asyncio
import errno
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from run_benchmarks.hosts.base import Host
from run_benchmarks.images.build import BUILD_TIMEOUT_S, BuildSite, build_name
from run_benchmarks.images.files import ImageFiles
from run_benchmarks.images.layers import ImagePlan
from run_benchmarks.images.store import StoredImage
from run_benchmarks.names import HostPaths
from run_benchmarks.plan.host_ranges import alike, fold
from run_benchmarks.plan.pip_record import PipSettings
from run_benchmarks.stages.deploy import deploy_tree
from run_benchmarks.stages.fan_out import all_of, errors_of, on_all, raise_first
from run_benchmarks.stages.file_systems import FileSystems
from run_benchmarks.stages.image import DistributionError, ImagesDifferError, ImageStage
from run_benchmarks.stages.image_stream import Counter
from run_benchmarks.stages.passing import PASS_ON_FROM, Content, Place, Site, bring, keep
from run_benchmarks.stages.progress import reported, size_text
from run_benchmarks.stages.tree import Tree
from run_benchmarks.transports import LOCALHOST
from run_benchmarks.transports.backoff import TRANSFER_PAUSES_S, is_passing, with_backoff
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.streams import CHUNK_BYTES
from utils.errors import FlagPerfError

BIG_FILES = "/var/tmp"  # noqa: S108 - a folder in it is made that is this user's; /tmp is in memory on many machines
# Of the disk that it is on, whatever a host sends: others write there too.
LEFT_FREE, SHARE_LEFT_FREE = 2**30, 0.1


@dataclass(frozen=True)
class ImageFileStage:
    """Gets the image file of a case to its hosts.

    Args:
        here: this machine. tree: the code, from which the image is built.
        log_dir: takes `image_build_localhost.log`.
    """

    files: ImageFiles
    hosts: Sequence[Host]
    here: Transport
    image: ImagePlan
    pip: PipSettings
    tree: Tree
    run_uid: str
    log_dir: Path
    file_systems: FileSystems = field(default_factory=FileSystems)

    async def run(self) -> dict[str, StoredImage]:
        """Host -> image, the same everywhere.

        Raises:
            DistributionError: it did not reach a host.
            ImagesDifferError: the hosts' images are not the same.
            FlagPerfError: it could not be made here, or a host was lost.
        """
        present = await self._images()
        lacking = [host for host in self.hosts if present[host.name] is None]
        if lacking:
            with tempfile.TemporaryDirectory(prefix="flagperf-image-", dir=BIG_FILES) as folder:
                name = f"image{self.files.suffix}"
                path = f"{folder}/{name}"
                holder = next((host for host in self.hosts if host not in lacking), None)
                # made anew it would be another file: it has the time in it
                content = await (self._fetched(holder, path) if holder else self._made(folder, name))
                await self._bring(lacking, Path(path), content)
            present = await self._images()
        images = {name: image for name, image in present.items() if image is not None}
        if len(images) < len(present):
            raise DistributionError("the image is still missing", where=fold(present.keys() - images.keys()))
        self._assert_same({name: image.id for name, image in images.items()})
        return images

    async def _images(self) -> dict[str, StoredImage | None]:
        seen = await all_of(self.hosts, lambda host: self.files.image(host.transport, self.image.tag))
        return {host.name: image for host, image in seen.items()}

    async def _made(self, folder: str, name: str) -> Content:
        """Build the image with this machine's engine, as a host of its own, and make it a file."""
        paths = HostPaths(f"{folder}/work", f"{folder}/work/tree", "", "")
        await deploy_tree(self.here, self.tree, paths)
        build = build_name(self.run_uid, LOCALHOST, self.image.tag)
        sites = {LOCALHOST: BuildSite(paths.tree, paths.work, self.run_uid, build, local=True)}
        transports, store = {LOCALHOST: self.here}, self.files.builds
        await ImageStage(store, transports, sites, self.image, self.pip, "build", self.log_dir).run()
        async with reported(f"{LOCALHOST}: making {self.image.tag} a file", lambda: ""):
            return Content(*await self.files.make(self.here, self.image.tag, folder, name))

    async def _fetched(self, holder: Host, path: str) -> Content:
        """Get the file from a host that has it."""
        image = await self.files.image(holder.transport, self.image.tag)
        try:
            came = await self._received(holder, path)
        except OSError as error:
            message = f"{self.image.tag} cannot be fetched from {holder.name}: {error}"
            raise DistributionError(message, where=LOCALHOST, remedy=f"make room in {BIG_FILES}") from error
        if image is None or image.id != f"sha256:{came.sha256}":
            message = f"{self.files.path(self.image.tag)} is not what it was when it came"
            raise DistributionError(message, where=holder.name, remedy="remove it there: it is made anew")
        return Content(came.bytes, came.sha256)

    async def _received(self, holder: Host, path: str) -> Counter:
        came = Counter()
        with Path(path).open("wb") as file:

            async def take(chunk: bytes) -> None:
                disk = shutil.disk_usage(file.fileno())
                if disk.free < min(LEFT_FREE, disk.total * SHARE_LEFT_FREE):
                    raise OSError(errno.ENOSPC, f"too little room is left after {size_text(came.bytes)}")
                file.write(chunk)
                came.take(chunk)

            what = f"{holder.name}: fetching {self.image.tag}, which other hosts lack"
            async with reported(what, lambda: size_text(came.bytes)):
                await self.files.hand_out(holder.transport, self.image.tag, take)
        return came

    async def _bring(self, hosts: Sequence[Host], path: Path, content: Content) -> None:
        left, many = list(hosts), len(self.file_systems.groups(hosts)) >= PASS_ON_FROM
        site = Site(self.files.work, self.run_uid, "python3" if many else "", self.file_systems)

        async def fill(places: Sequence[Place]) -> tuple[Content, Mapping[str, FlagPerfError]]:
            kept = await on_all(places, lambda place: keep(place, _chunks(path), BUILD_TIMEOUT_S))
            return content, {place.host.name: error for place, error in errors_of(kept).items()}

        async def use(place: Place) -> None:
            await self.files.take(place.host.transport, self.image.tag, place.copy, content.sha256)

        async def attempt() -> None:
            failed = await bring(self.image.tag, left, site, content.size, fill, use)
            left[:] = [host for host in left if host.name in failed]
            lasting_first = sorted(failed.values(), key=is_passing)
            raise_first(lasting_first)

        try:
            await with_backoff(attempt, TRANSFER_PAUSES_S, is_passing)
        except FlagPerfError as error:
            message = (
                f"{self.image.tag} was not brought to {fold([host.name for host in left])}: {error.message}"
            )
            raise DistributionError(message, where=error.where, remedy=error.remedy) from error

    def _assert_same(self, ids: Mapping[str, str]) -> None:
        if len(set(ids.values())) > 1:
            listed = ", ".join(f"{hosts} {image_id}" for hosts, image_id in alike(ids))
            message = f"the nodes hold different files as {self.image.tag}: {listed}"
            remedy = f"remove {self.files.path(self.image.tag)} on all of them: it is made anew"
            raise ImagesDifferError(message, where=fold(ids), remedy=remedy)


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
