"""What an image store is: where a host keeps the images that its units run in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from run_benchmarks.images.layers import ImagePlan
from run_benchmarks.plan.records import PipSettings
from run_benchmarks.transports.base import ByteSink, Transport


@dataclass(frozen=True)
class BuildSite:
    """Where on a host an image is built.

    tree, work: folders on the host: the deployed training tree, and where FlagPerf may write.
    name: for containers, unique to this run and case.
    local: whether the host is this machine, whose own folders of wheels a build can see.
    """

    tree: str
    work: str
    run_uid: str
    name: str
    local: bool


class ImageStore(Protocol):
    """The images of a host. Every verb may take as long as BUILD_TIMEOUT_S; none is repeated by itself."""

    async def image_id(self, transport: Transport, tag: str) -> str | None:
        """The ID of the image `tag` on the host, or None where it has no such image.

        Raises:
            CommandError: the store does not answer.
        """
        ...

    async def build(
        self, transport: Transport, site: BuildSite, image: ImagePlan, pip: PipSettings, log: ByteSink
    ) -> None:
        """Make every layer of `image` that the host lacks; what the builds print goes to `log`.

        Raises:
            CommandError: a build failed; it carries the end of its output.
        """
        ...

    async def export(self, transport: Transport, tag: str, sink: ByteSink) -> None:
        """Hand the image to `sink`, as one archive. Raises CommandError where it cannot be read."""
        ...

    async def import_(self, transport: Transport, archive: AsyncIterator[bytes]) -> None:
        """Take in an archive that another host's store has exported. Raises CommandError where that fails."""
        ...

    async def pull(self, transport: Transport, tag: str) -> None:
        """Get the image from its registry. Raises CommandError where that fails."""
        ...

    async def push(self, transport: Transport, tag: str) -> None:
        """Bring the image to its registry. Raises CommandError, with its remedy, where that fails."""
        ...

    async def software_digest(self, transport: Transport, tag: str) -> str:
        """A digest of what is installed in an image: interpreter, Python packages and system packages."""
        ...

    def remove_command(self, tag: str) -> str:
        """What a user types on a host to be rid of an image."""
        ...
