"""Apptainer: a unit's command in a SIF file, as the user and with nothing more than that user may do."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping

from run_benchmarks.plan.tool_options import Wanted
from run_benchmarks.runtimes.base import Mount, Unit
from run_benchmarks.runtimes.image_file import ImageFileRuntime, marks_of
from run_benchmarks.transports.base import CommandError, Transport

# Its first version with --no-eval: without that, a shell would read the values of variables.
OLDEST = (1, 1)
# --containall: its own processes, shared memory, /tmp and home; of the host's environment nothing.
CONFINED = ("--containall", "--no-home", "--no-privs", "--no-eval")
# How a variable is handed on that stands in no argument.
HANDED_ON = "APPTAINERENV_"
# $0: a folder that is made, for what the container's /tmp and /var/tmp take; then the command.
WITH_WORKDIR = 'mkdir -p -m 700 "$0" && exec "$@"'


class ApptainerRuntime(ImageFileRuntime):
    """`apptainer exec` of the image's SIF file."""

    name = "apptainer"
    SUFFIX = ".sif"

    def boxed(self, unit: Unit, wanted: Wanted, folder: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """`apptainer exec ...`; root's capabilities are dropped, and anybody else has none."""
        devices = (Mount(path, path, read_only=False) for path in wanted.devices)
        words = (
            "apptainer",
            "exec",
            *CONFINED,
            f"--workdir={folder}/workdir",
            *(() if unit.host_network else ("--net", "--network=none")),
            *(("--nv",) if wanted.gpus else ()),
            *map(_bind, (*unit.mounts, *devices)),
            *((f"--pwd={unit.workdir}",) if unit.workdir else ()),
            self.image_path(unit.image),
        )
        argv = ("sh", "-c", WITH_WORKDIR, f"{folder}/workdir", *words, *unit.argv)
        variables = {**unit.secrets, **marks_of(unit)}
        return argv, {f"{HANDED_ON}{name}": value for name, value in variables.items()}

    async def _tool_version(self, transport: Transport) -> str:
        said = await self._in_time(transport, ("apptainer", "--version"))
        version = re.search(r"(\d{1,4})\.(\d{1,4})", said.stdout)
        if not said.ok or not version or (int(version[1]), int(version[2])) < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise CommandError(said, f"install Apptainer {oldest} or newer on {transport.host}")
        return said.stdout.strip()


def _bind(mount: Mount) -> str:
    """A bind mount; its value is a line of CSV, so that a path may hold anything."""
    fields = ["type=bind", f"source={mount.host}", f"destination={mount.inside}"]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([*fields, *(["ro"] if mount.read_only else [])])
    return f"--mount={line.getvalue()}"
