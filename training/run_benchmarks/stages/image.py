"""The image stage: the case's image on every node, the same one, or the round does not start."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from run_benchmarks.hosts.base import Host
from run_benchmarks.images.build import BuildSite
from run_benchmarks.images.layers import ImagePlan
from run_benchmarks.images.store import ImageStore, StoredImage
from run_benchmarks.plan.host_ranges import alike, fold
from run_benchmarks.plan.pip_record import PipSettings
from run_benchmarks.run_log import LOGGER
from run_benchmarks.stages.fan_out import all_of, raise_first
from run_benchmarks.stages.file_systems import FileSystems
from run_benchmarks.stages.image_archive import ImageArchiveError
from run_benchmarks.stages.image_passing import bring_image
from run_benchmarks.stages.image_stream import Counter, stream_image
from run_benchmarks.stages.passing import PASS_ON_FROM, Site
from run_benchmarks.stages.progress import LastWords, reported, size_text, whole_lines
from run_benchmarks.transports.backoff import TRANSFER_PAUSES_S, is_passing, with_backoff
from run_benchmarks.transports.base import CommandError, CommandTimeoutError, Transport
from utils.errors import FlagPerfError
from utils.records import FailureClass

# What an engine says of a registry, or of the way to it, that may answer in a moment.
BUSY = re.compile(
    r"i/o timeout|TLS handshake timeout|connection reset|unexpected EOF|toomanyrequests|too many requests|"
    r"50[0234] (internal|bad gateway|service unavailable|gateway)",
    re.IGNORECASE,
)


def _may_pass(error: FlagPerfError) -> bool:
    return is_passing(error) or BUSY.search(error.message) is not None


class DistributionError(FlagPerfError):
    """The image was made, but it did not reach every host of the case."""

    failure_class = FailureClass.IMAGE_NOT_DISTRIBUTED


class ImagesDifferError(FlagPerfError):
    """The hosts have images that are not the same."""

    failure_class = FailureClass.IMAGES_DIFFER


@dataclass(frozen=True)
class ImageStage:
    """Gets one image to the hosts of one case.

    Args:
        store: the hosts' image store.
        transports: the case's hosts, the first of which builds where only one does.
        sites: how each host builds.
        distribution: `build` (every node builds), `stream` (one builds, the others receive) or `registry`.
        log_dir: takes `image_build_<host>.log`.
        addresses: by which the other hosts reach one, where that is not its name.
        file_systems: which of the hosts see one work folder.
    """

    store: ImageStore
    transports: Mapping[str, Transport]
    sites: Mapping[str, BuildSite]
    image: ImagePlan
    pip: PipSettings
    distribution: str
    log_dir: Path
    addresses: Mapping[str, str] = field(default_factory=dict)
    file_systems: FileSystems = field(default_factory=FileSystems)

    async def run(self) -> dict[str, StoredImage]:
        """Host -> image, the same everywhere (or, where every node built, the same software).

        Raises:
            DistributionError: it did not reach a host.
            ImagesDifferError: the hosts' images are not the same.
            FlagPerfError: it could not be built, or a host was lost.
        """
        present = await self.images()
        missing = [host for host, image in present.items() if image is None]
        if missing:
            LOGGER.info(f"image {self.image.tag}: not on {fold(missing)}")
            await self._provide(present, missing)
            present = await self.images()
        images = {host: image for host, image in present.items() if image is not None}
        if len(images) < len(present):
            lacking = fold([host for host in present if host not in images])
            remedy = "see the case's image_build log"
            raise DistributionError("the image is still missing", where=lacking, remedy=remedy)
        await self._assert_same({host: image.id for host, image in images.items()})
        return images

    async def images(self) -> dict[str, StoredImage | None]:
        """Host -> the case's image there, or None."""
        return await all_of(
            list(self.transports), lambda host: self.store.image(self.transports[host], self.image.tag)
        )

    async def _provide(self, present: Mapping[str, StoredImage | None], missing: Sequence[str]) -> None:
        source = next((host for host, image in present.items() if image), None)
        if self.distribution == "build":
            await all_of(missing, self._build)
        elif self.distribution == "registry":
            await self._through_registry(source, missing)
        else:
            await self._from_one(source, missing)

    async def _build(self, host: str) -> None:
        self.log_dir.mkdir(parents=True, exist_ok=True)
        path = self.log_dir / f"image_build_{host}.log"
        last = LastWords(self.image.hide)
        with path.open("ab") as file, whole_lines(file, self.image.hide) as write:

            async def log(chunk: bytes) -> None:
                write(chunk)
                await last.take(chunk)

            async with reported(f"{host}: building {self.image.tag} (output: {path})", last.__str__):
                await self.store.build(self.transports[host], self.sites[host], self.image, self.pip, log)

    async def _from_one(self, source: str | None, missing: Sequence[str]) -> None:
        """One host that has it, or builds it, gives it to the others."""
        if source is None:
            source = next(iter(self.transports))
            await self._build(source)
        targets = [host for host in missing if host != source]
        if not targets:
            return
        hosts = [Host(name, self.addresses.get(name, name), self.transports[name]) for name in targets]
        groups = self.file_systems.groups(hosts)
        if len(groups) >= PASS_ON_FROM:
            left = await self._passed_on(source, hosts, "python3")
        else:  # there are too few copies to be passed on, but some are of several hosts
            left = await self._passed_on(
                source, [host for group in groups if len(group) > 1 for host in group], ""
            )
            left += [group[0].name for group in groups if len(group) == 1]
        if left:
            await self._streamed(source, left)

    async def _passed_on(self, source: str, hosts: Sequence[Host], python: str) -> list[str]:
        """Let `hosts` give it to each other, or use one copy where they share a file system; those without it then."""
        if not hosts:
            return []
        build, tag, sent, had = self.sites[source], self.image.tag, Counter(), set[str]()
        site = Site(build.work, build.run_uid, python, self.file_systems)
        names = [host.name for host in hosts]
        how = "which pass it on" if python else "which share file systems"
        what = f"{source}: streaming {await self._named(source)} to {fold(names)}, {how}"
        try:
            async with reported(what, lambda: f"{size_text(sent.bytes)} sent, {len(had)} hosts have it"):
                failed = await bring_image(self.store, self.transports[source], hosts, tag, site, sent, had)
        except ImageArchiveError as error:
            raise self._not_trusted(source, error) from error
        except FlagPerfError as error:
            LOGGER.warning(f"{tag} was not passed on: {error}")
            return names
        return list(failed)

    async def _streamed(self, source: str, targets: Sequence[str]) -> None:
        """Let all of them load it while it comes from the source."""
        sent, left = Counter(), list(targets)

        async def stream() -> None:
            nonlocal sent
            sent = Counter()
            receivers = [self.transports[host] for host in left]
            failed = await stream_image(self.store, self.transports[source], receivers, self.image.tag, sent)
            left[:] = failed
            lasting_first: list[FlagPerfError] = sorted(failed.values(), key=is_passing)
            raise_first(lasting_first)

        what = f"{source}: streaming {await self._named(source)} to {fold(targets)}"
        try:
            async with reported(what, lambda: f"{size_text(sent.bytes)} sent"):
                await with_backoff(stream, TRANSFER_PAUSES_S, is_passing)
        except (CommandError, CommandTimeoutError) as error:
            raise self._not_distributed(f"was not streamed from {source}", error) from error
        except ImageArchiveError as error:
            raise self._not_trusted(source, error) from error

    async def _through_registry(self, source: str | None, missing: Sequence[str]) -> None:
        """Pull where the registry has it; else one host builds and pushes, and the others pull."""
        if source is None and not await self._pulled(missing[0]):
            await self._build(missing[0])
            source = missing[0]
        if source is not None:
            await self._push(source)
        pulled = await all_of([host for host in missing if host != source], self._pulled)
        failed = [host for host, done in pulled.items() if not done]
        if failed:
            raise DistributionError(
                f"cannot pull {self.image.tag}",
                where=fold(failed),
                remedy="check IMAGE_REGISTRY and that each node may pull from it (login, insecure-registries)",
            )

    async def _push(self, source: str) -> None:
        last, registry = LastWords(), self.image.tag.rpartition("/")[0]
        try:
            async with reported(f"{source}: pushing {await self._named(source)} to {registry}", last.__str__):
                push = partial(self.store.push, self.transports[source], self.image.tag, last.take)
                await with_backoff(push, TRANSFER_PAUSES_S, _may_pass)
        except CommandError as error:
            raise self._not_distributed("cannot be pushed", error) from error

    async def _pulled(self, host: str) -> bool:
        last, registry = LastWords(), self.image.tag.rpartition("/")[0]
        try:
            async with reported(f"{host}: pulling {self.image.tag} from {registry}", last.__str__):
                pull = partial(self.store.pull, self.transports[host], self.image.tag, last.take)
                await with_backoff(pull, TRANSFER_PAUSES_S, _may_pass)
        except CommandError as error:
            LOGGER.info(f"{host}: {self.image.tag} was not pulled: {error.completed.last_lines(1)}")
            return False
        return True

    async def _named(self, host: str) -> str:
        """The image, with its size where the host's engine says it."""
        size = size_text(await self.store.size(self.transports[host], self.image.tag))
        return f"{self.image.tag}{size and f' ({size})'}"

    def _not_distributed(self, what: str, error: FlagPerfError) -> DistributionError:
        message = f"{self.image.tag} {what}: {error.message}"
        return DistributionError(message, where=error.where, remedy=error.remedy)

    def _not_trusted(self, source: str, error: ImageArchiveError) -> DistributionError:
        remedy = f"find out what the engine of {source} sends, and why, before you trust that host again; "
        remedy += "without it: IMAGE_DISTRIBUTION = 'build' or 'registry' in test_conf.py"
        return DistributionError(error.message, where=source, remedy=remedy)

    async def _assert_same(self, ids: Mapping[str, str]) -> None:
        if len(set(ids.values())) <= 1:
            return
        if self.distribution == "build":
            await self._assert_same_software()
            return
        listed = ", ".join(f"{hosts} {image_id}" for hosts, image_id in alike(ids))
        raise ImagesDifferError(
            f"the nodes hold different images under {self.image.tag}: {listed}",
            where=fold(ids),
            remedy=f"remove it on all but one of them: {self.store.remove_command(self.image.tag)}",
        )

    async def _assert_same_software(self) -> None:
        """Where every node built for itself, the IDs differ by their timestamps; what is installed may not."""
        digests = await all_of(
            list(self.transports),
            lambda host: self.store.software_digest(self.transports[host], self.sites[host], self.image.tag),
        )
        if len(set(digests.values())) > 1:
            listed = ", ".join(f"{hosts} {digest}" for hosts, digest in alike(digests))
            raise ImagesDifferError(
                f"the nodes built {self.image.tag} with different software in it: {listed}",
                where=fold(digests),
                remedy="set IMAGE_DISTRIBUTION = 'stream' in test_conf.py: one node builds, the others get its image",
            )
