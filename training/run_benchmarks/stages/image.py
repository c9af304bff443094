"""The image stage: the case's image on every node, the same one, or the round does not start."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from run_benchmarks.plan.records import PipSettings
from run_benchmarks.run_log import LOGGER
from run_benchmarks.stages.fan_out import errors_of, on_all, values_of
from run_benchmarks.stages.image_build import BUILD_TIMEOUT_S, BuildSite, build_image, image_id
from run_benchmarks.stages.image_distribute import (
    DistributionError,
    ImagesDifferError,
    assert_same_software,
    stream_image,
)
from run_benchmarks.stages.image_plan import ImagePlan
from run_benchmarks.transports.base import ByteSink, CommandError, CommandTimeoutError, Transport
from utils.errors import FlagPerfError


class ImageStage:
    """Gets one image to the hosts of one case.

    Args:
        transports: the case's hosts, the first of which builds where only one does.
        sites: how each host builds.
        distribution: `build` (every node builds), `stream` (one builds, the others receive) or `registry`.
        log_dir: takes `image_build_<host>.log`.
    """

    def __init__(
        self,
        transports: Mapping[str, Transport],
        sites: Mapping[str, BuildSite],
        image: ImagePlan,
        pip: PipSettings,
        distribution: str,
        log_dir: Path,
    ) -> None:
        self.transports = transports
        self.sites = sites
        self.image = image
        self.pip = pip
        self.distribution = distribution
        self.log_dir = log_dir
        self.engine = next(iter(sites.values())).engine

    async def run(self) -> dict[str, str]:
        """Host -> image ID, the same everywhere (or, where every node built, the same software).

        Raises:
            DistributionError: it did not reach a host.
            ImagesDifferError: the hosts' images are not the same.
            FlagPerfError: it could not be built, or a host was lost.
        """
        present = await self.image_ids()
        missing = [host for host, found in present.items() if found is None]
        if missing:
            LOGGER.info(f"image {self.image.tag}: not on {', '.join(missing)}")
            await self._provide(present, missing)
            present = await self.image_ids()
        ids = {host: found for host, found in present.items() if found is not None}
        if len(ids) < len(present):
            lacking = ", ".join(sorted(set(present) - set(ids)))
            remedy = "see the case's image_build log"
            raise DistributionError("the image is still missing", where=lacking, remedy=remedy)
        await self._assert_same(ids)
        return ids

    async def image_ids(self) -> dict[str, str | None]:
        """Host -> the ID of the case's image there, or None."""
        results = await on_all(
            list(self.transports), lambda host: image_id(self.transports[host], self.engine, self.image.tag)
        )
        _raise_first(errors_of(results))
        return values_of(results)

    async def _provide(self, present: Mapping[str, str | None], missing: Sequence[str]) -> None:
        if self.distribution == "build":
            results = await on_all(missing, self._build)
            _raise_first(errors_of(results))
            return
        source = next((host for host, found in present.items() if found), None)
        if self.distribution == "registry":
            await self._through_registry(source, missing)
            return
        if source is None:
            source = next(iter(self.transports))
            await self._build(source)
        await self._stream(source, [host for host in missing if host != source])

    async def _build(self, host: str) -> None:
        self.log_dir.mkdir(parents=True, exist_ok=True)
        path = self.log_dir / f"image_build_{host}.log"
        LOGGER.info(f"{host}: building {self.image.tag} (output: {path})")
        with path.open("ab") as file:

            async def sink(chunk: bytes) -> None:
                file.write(chunk)
                file.flush()

            log: ByteSink = sink
            await build_image(self.transports[host], self.sites[host], self.image, self.pip, log)

    async def _stream(self, source: str, targets: Sequence[str]) -> None:
        if not targets:
            return
        LOGGER.info(f"{source}: streaming {self.image.tag} to {', '.join(targets)}")
        receivers = [self.transports[host] for host in targets]
        try:
            _raise_first(await stream_image(self.transports[source], receivers, self.engine, self.image.tag))
        except (CommandError, CommandTimeoutError) as error:
            message = f"{self.image.tag} was not streamed from {source}: {error.message}"
            raise DistributionError(message, where=error.where, remedy=error.remedy) from error

    async def _through_registry(self, source: str | None, missing: Sequence[str]) -> None:
        """Pull where the registry has it; else one host builds and pushes, and the others pull."""
        if source is None and not await self._pull(missing[0]):
            await self._build(missing[0])
            source = missing[0]
        if source is not None:
            await self._push(source)
        rest = [host for host in missing if host != source]
        pulled = await asyncio.gather(*(self._pull(host) for host in rest))
        failed = [host for host, done in zip(rest, pulled, strict=True) if not done]
        if failed:
            raise DistributionError(
                f"cannot pull {self.image.tag}",
                where=", ".join(failed),
                remedy="check IMAGE_REGISTRY and that each node may pull from it (login, insecure-registries)",
            )

    async def _push(self, source: str) -> None:
        push = [self.engine, "push", self.image.tag]
        completed = await self.transports[source].run(push, timeout=BUILD_TIMEOUT_S)
        if not completed.ok:
            raise DistributionError(
                f"cannot push {self.image.tag}\n{completed.last_lines()}",
                where=source,
                remedy=f"log in on {source}: {self.engine} login, and check IMAGE_REGISTRY in test_conf.py",
            )

    async def _pull(self, host: str) -> bool:
        completed = await self.transports[host].run(
            [self.engine, "pull", self.image.tag], timeout=BUILD_TIMEOUT_S
        )
        if not completed.ok:
            LOGGER.info(f"{host}: {self.image.tag} was not pulled: {completed.last_lines(1)}")
        return completed.ok

    async def _assert_same(self, ids: Mapping[str, str]) -> None:
        if len(set(ids.values())) <= 1:
            return
        if self.distribution == "build":
            await assert_same_software(self.transports, self.engine, self.image.tag)
            return
        listed = ", ".join(f"{host} {found}" for host, found in ids.items())
        raise ImagesDifferError(
            f"the nodes hold different images under {self.image.tag}: {listed}",
            where=", ".join(ids),
            remedy=f"remove it on all but one of them: {self.engine} image rm {self.image.tag}",
        )


def _raise_first(errors: Mapping[str, FlagPerfError]) -> None:
    for error in errors.values():
        raise error
