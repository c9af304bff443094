"""The process runtime: a unit is a process tree, for hosts without a container engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from run_benchmarks.names import WORK_FOLDER
from run_benchmarks.plan.records import RunSettings
from run_benchmarks.runtimes.base import Mount, Unit, UnitState
from run_benchmarks.transports.base import CommandError, Completed, Transport
from utils import process_unit
from utils.errors import FlagPerfError

PROGRAM, OUTPUT = "process_unit.py", "output.log"  # in every unit's folder
OLDEST_PYTHON = (3, 8)


class ProcessRuntime:
    """Process trees, started and found again by utils/process_unit.py on the host. There are no images."""

    name = "process"

    def __init__(self, run: RunSettings) -> None:
        self.python = run.process_python
        self._units = f"{run.flagperf_path_host.rstrip('/')}/{WORK_FOLDER}/units"

    def path_inside(self, mounts: Sequence[Mount], host_path: str) -> str:
        """The path itself: a process sees what the host sees."""
        return host_path

    def start_argv(self, unit: Unit) -> tuple[str, ...]:
        """`python3 -m utils.process_unit start ...` from the deployed tree, which the unit's PYTHONPATH names.

        Raises:
            FlagPerfError: the unit has no PYTHONPATH.
        """
        if not unit.env.get("PYTHONPATH"):
            raise FlagPerfError(f"unit {unit.name} has no PYTHONPATH: the deployed tree is not known")
        return (
            "env",
            f"PYTHONPATH={unit.env['PYTHONPATH']}",
            *(self.python, "-m", "utils.process_unit", "start", self._folder(unit.name)),
            *(f"--label={name}={value}" for name, value in unit.labels.items()),
            *(f"--env={name}={value}" for name, value in unit.env.items()),
            *((f"--workdir={unit.workdir}",) if unit.workdir else ()),
            "--",
            *unit.argv,
        )

    def wait_argv(self, name: str) -> tuple[str, ...]:
        """Returns when the unit has ended; prints its exit code."""
        return self._with_unit("wait", name)

    def stop_argv(self, name: str, grace_s: int) -> tuple[str, ...]:
        """SIGTERM to the whole tree, then SIGKILL after `grace_s` seconds."""
        return (*self._with_unit("stop", name), str(grace_s))

    async def start(self, transport: Transport, unit: Unit) -> None:
        """Start the unit.

        Raises:
            CommandError: a unit of this name exists, or its command is not there.
        """
        completed = await transport.run(self.start_argv(unit))
        if not completed.ok:
            raise CommandError(completed, self._remedy(completed))

    async def wait(self, transport: Transport, name: str) -> int:
        """The exit code; 137 also where the supervisor was killed and nobody knows it.

        Raises:
            CommandError: there is no such unit.
        """
        completed = await transport.run(self.wait_argv(name))
        if not completed.ok:
            raise CommandError(completed, self._remedy(completed))
        return int(completed.stdout.split()[-1])

    async def stop(self, transport: Transport, name: str, grace_s: int) -> None:
        """End the unit; it is no error if it has ended or is gone."""
        completed = await transport.run(self.stop_argv(name, grace_s))
        if not completed.ok and not _is_gone(completed):
            raise CommandError(completed, self._remedy(completed))

    async def remove_all(self, transport: Transport, run_id: str, grace_s: int = 0) -> tuple[str, ...]:
        """End and remove every unit of the run on this host; returns the names of those that were there."""
        completed = await self._program(transport, "remove", self._units, run_id, str(grace_s))
        return tuple(completed.stdout.split())

    async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
        """FlagPerf's units on this host, of one run or of all."""
        words = (self._units,) if run_id is None else (self._units, run_id)
        completed = await self._program(transport, "list", *words)
        units = (json.loads(line) for line in completed.stdout.splitlines())
        return tuple(UnitState(unit["name"], unit["labels"], unit["running"]) for unit in units)

    async def last_output(self, transport: Transport, name: str, lines: int = 50) -> str:
        """The end of what the unit's main process printed; empty if the unit is gone."""
        completed = await transport.run(("tail", "-n", str(lines), f"{self._folder(name)}/{OUTPUT}"))
        return completed.stdout.strip() if completed.ok else ""

    async def version(self, transport: Transport) -> str:
        """The interpreter's version.

        Raises:
            CommandError: it is not there, or too old.
        """
        code = f"import sys; print(sys.version.split()[0]); sys.exit(sys.version_info < {OLDEST_PYTHON})"
        completed = await transport.run((self.python, "-c", code))
        if not completed.ok:
            raise CommandError(completed, self._remedy(completed))
        return f"python {completed.stdout.strip()}"

    def _folder(self, name: str) -> str:
        return f"{self._units}/{name}"

    def _with_unit(self, verb: str, name: str) -> tuple[str, ...]:
        return (self.python, f"{self._folder(name)}/{PROGRAM}", verb, self._folder(name))

    async def _program(self, transport: Transport, *words: str) -> Completed:
        """Run the program where nothing may be deployed yet, or not any more: it goes in by standard input."""
        source = Path(process_unit.__file__).read_bytes()
        completed = await transport.run((self.python, "-", *words), stdin=source)
        if not completed.ok:
            raise CommandError(completed, self._remedy(completed))
        return completed

    def _remedy(self, completed: Completed) -> str:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        if completed.returncode == 127 or completed.argv[1] == "-c":
            return f"install Python {oldest} or later on {completed.host}, or name one with PROCESS_PYTHON"
        return ""


def _is_gone(completed: Completed) -> bool:
    return "No such file" in completed.stderr or "the unit was removed" in completed.stderr
