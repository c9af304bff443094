"""Units whose processes a tool puts into an image that is a file: no server, and no rights but the user's.

The tool is a process like any other, so that units are started, found and ended as those of the process runtime are.
What is of the image stands in the folder of images below the work folder (`images/files.py`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from run_benchmarks.names import LABEL_RUN, image_file, work_folder
from run_benchmarks.plan.records import RunSettings
from run_benchmarks.plan.tool_options import Wanted, wanted_by
from run_benchmarks.runtimes.base import Mount, Unit
from run_benchmarks.runtimes.containers import SCRATCH, seen_through
from run_benchmarks.runtimes.process import ProcessRuntime
from run_benchmarks.runtimes.submounts import with_submounts
from run_benchmarks.transports.base import Completed, Transport
from utils.errors import FlagPerfError
from utils.process_unit import RUN_MARK, UNIT_MARK


def marks_of(unit: Unit) -> dict[str, str]:
    """The variables by which a unit's processes are found."""
    return {UNIT_MARK: unit.name, RUN_MARK: unit.labels.get(LABEL_RUN, "")}


class ImageFileRuntime(ProcessRuntime):
    """Process units, each of which runs the unit's command in a container.

    SUFFIX: of image files.
    """

    SUFFIX: ClassVar[str]

    def __init__(self, run: RunSettings) -> None:
        super().__init__(run)
        self.python = "python3"  # the image's
        self._work = work_folder(run)

    def path_inside(self, mounts: Sequence[Mount], host_path: str) -> str:
        return seen_through(mounts, host_path)

    def scratch(self, name: str) -> str:
        return SCRATCH

    async def start(self, transport: Transport, unit: Unit) -> None:
        """As the process runtime does: the tool, with what it is to put into the container."""
        wanted = wanted_by(unit.options)
        more = [Mount(host, inside, read_only) for host, inside, read_only in wanted.folders]
        mounts = await with_submounts(transport, None, unit.mounts, {mount.inside for mount in more})
        variables = {**unit.env, **dict(wanted.variables), **unit.secrets}
        boxed = replace(unit, mounts=(*mounts, *more), secrets=variables, env={})
        argv, environment = self.boxed(boxed, wanted, self._folder(unit.name))
        tree = next((mount.host for mount in unit.mounts if mount.inside == unit.tree), unit.tree)
        await super().start(transport, replace(boxed, argv=argv, secrets=environment, tree=tree, workdir=""))

    @abstractmethod
    def boxed(self, unit: Unit, wanted: Wanted, folder: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """The command that runs the unit's in its image, and its variables, whose values stand nowhere else.

        Args:
            unit: all its variables are `secrets`, all its mounts `mounts`. The container needs the marks, too, by which
                what has lost its parent is found (`marks_of`); the command has them in its own environment.
            folder: of the unit on its host; it goes with it.
        """

    def image_path(self, tag: str) -> str:
        """Where a host has the image `tag`."""
        return image_file(self._work, tag, self.SUFFIX)

    async def run_inside(
        self, transport: Transport, name: str, program: bytes, *words: str, timeout: float
    ) -> Completed:
        message = f"nothing can be run beside a unit of RUNTIME = {self.name!r}"
        raise FlagPerfError(message, where=transport.host, remedy=f"log in to {transport.host} and look")

    async def version(self, transport: Transport) -> str:
        """The version of the tool; that of the host's Python has been looked at, too."""
        python = await super().version(transport)
        return f"{await self._tool_version(transport)}, {python}"

    @abstractmethod
    async def _tool_version(self, transport: Transport) -> str:
        """What the tool says of itself; CommandError where it is not there, or is too old."""
