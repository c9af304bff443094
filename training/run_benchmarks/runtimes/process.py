"""The process runtime: a unit is a process tree, for hosts without a container engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from run_benchmarks.names import WORK_FOLDER
from run_benchmarks.plan.records import RunSettings
from run_benchmarks.runtimes.base import Mount, Runtime, Unit, UnitState
from run_benchmarks.transports.base import Completed, Transport
from utils import process_unit

PROGRAM, OUTPUT = "process_unit.py", "output.log"  # in every unit's folder
OLDEST_PYTHON = (3, 8)
LAST_BYTES = 65536  # of what a unit printed


class ProcessRuntime(Runtime):
    """Process trees, started and found again by utils/process_unit.py on the host. There are no images."""

    name = "process"

    def __init__(self, run: RunSettings) -> None:
        self.python = run.process_python
        self._units = f"{run.flagperf_path_host.rstrip('/')}/{WORK_FOLDER}/units"
        self.units_seen = f"{self._units} and the ssh user's processes"

    def path_inside(self, mounts: Sequence[Mount], host_path: str) -> str:
        return host_path

    async def start(self, transport: Transport, unit: Unit) -> None:
        """`python3 -m utils.process_unit start ...` from the deployed tree, which the unit's PYTHONPATH names."""
        argv = (
            "env",
            f"PYTHONPATH={unit.env['PYTHONPATH']}",
            *(self.python, "-m", "utils.process_unit", "start", self._folder(unit.name)),
            *(f"--label={name}={value}" for name, value in unit.labels.items()),
            *(f"--env={name}={value}" for name, value in unit.env.items()),
            *((f"--workdir={unit.workdir}",) if unit.workdir else ()),
            "--",
            *unit.argv,
        )
        await self._checked(transport, argv)

    async def remove_all(self, transport: Transport, run_id: str, grace_s: int = 0) -> tuple[str, ...]:
        completed = await self._program(transport, "remove", self._units, run_id, str(grace_s))
        return tuple(completed.stdout.split())

    async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
        words = (self._units,) if run_id is None else (self._units, run_id)
        completed = await self._program(transport, "list", *words)
        units = (json.loads(line) for line in completed.stdout.splitlines())
        return tuple(UnitState(unit["name"], unit["labels"], unit["running"]) for unit in units)

    async def last_output(self, transport: Transport, name: str, lines: int = 50) -> str:
        # a task may print a line that has no end
        completed = await transport.run(("tail", "-c", str(LAST_BYTES), f"{self._folder(name)}/{OUTPUT}"))
        return completed.last_lines(lines) if completed.ok else ""

    async def version(self, transport: Transport) -> str:
        """The interpreter's version; it may be missing, or too old."""
        code = f"import sys; print(sys.version.split()[0]); sys.exit(sys.version_info < {OLDEST_PYTHON})"
        completed = await self._checked(transport, (self.python, "-c", code))
        return f"python {completed.stdout.strip()}"

    def _folder(self, name: str) -> str:
        return f"{self._units}/{name}"

    def _wait_argv(self, name: str) -> tuple[str, ...]:
        # 137 also where the supervisor was killed and nobody knows the code
        return self._with_unit("wait", name)

    def _stop_argv(self, name: str, grace_s: int) -> tuple[str, ...]:
        # the whole tree, not the main process alone
        return (*self._with_unit("stop", name), str(grace_s))

    def _with_unit(self, verb: str, name: str) -> tuple[str, ...]:
        return (self.python, f"{self._folder(name)}/{PROGRAM}", verb, self._folder(name))

    async def _program(self, transport: Transport, *words: str) -> Completed:
        """Run the program where nothing may be deployed yet, or not any more: it goes in by standard input."""
        source = Path(process_unit.__file__).read_bytes()
        return await self._checked(transport, (self.python, "-", *words), stdin=source)

    def _is_gone(self, completed: Completed) -> bool:
        return "No such file" in completed.stderr or "the unit was removed" in completed.stderr

    def _remedy(self, completed: Completed) -> str:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        if completed.returncode == 127 or completed.argv[1] == "-c":
            return f"install Python {oldest} or later on {completed.host}, or name one with PROCESS_PYTHON"
        return ""
