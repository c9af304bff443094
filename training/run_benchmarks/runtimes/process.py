"""The process runtime: a unit is a process tree, for hosts without a container engine."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from run_benchmarks.host_log import LONGEST_SAID
from run_benchmarks.names import UNITS, work_folder
from run_benchmarks.plan.records import RunSettings
from run_benchmarks.reading import object_in, parsed
from run_benchmarks.run_log import LOGGER
from run_benchmarks.runtimes.base import Mount, Runtime, Unit, UnitState
from run_benchmarks.stages.work_folder import ENTER_OWN, STILL_OWN, guard_argv
from run_benchmarks.transports.base import Completed, Transport
from utils import process_unit
from utils.records import FailureClass
from utils.text_files import shortened_to_words

PROGRAM = "process_unit.py"
OUTPUT = "output.log"  # in every unit's folder
OUTPUT_BYTES, OUTPUT_TIMEOUT_S = 2**16, 60.0
# $0: the work folder; $1: a file below it; $2: how many bytes.
TAIL = f'{ENTER_OWN}exec tail -c "$2" "./$1"'
# From $2 on: a command of a program that lies in the work folder.
START = f'{STILL_OWN}shift; exec "$@"'
END = "end-of-the-program"
OLDEST_PYTHON = (3, 8)
# What Python imports by name never comes from the folder that a command happens to run in, or from PYTHONPATH.
ISOLATED = ("-I",)
# Bytecode beside the code would be run in its place, and nobody could tell what it was made of; nor is what the user's
# own shell lets Python import a part of a run.
OWN_CODE = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": ""}
MOST_WARNINGS = 10  # of what is left alone among a host's units, each time they are listed
# Where PyTorch's compilers keep what they have made; by themselves they take, and run, what anybody has left in /tmp.
COMPILED = ("TORCHINDUCTOR_CACHE_DIR", "QUACK_CACHE_DIR")


class ProcessRuntime(Runtime):
    """Process trees, started and found again by utils/process_unit.py on the host. There are no images."""

    name = "process"

    def __init__(self, run: RunSettings) -> None:
        self.python = self._host_python = run.process_python
        self._work = work_folder(run)
        self._units = f"{self._work}/{UNITS}"
        self.units_seen = f"{self._units} and the ssh user's processes"

    def path_inside(self, mounts: Sequence[Mount], host_path: str) -> str:
        return host_path

    def scratch(self, name: str) -> str:
        return f"{self._folder(name)}/scratch"

    async def start(self, transport: Transport, unit: Unit) -> None:
        """`python3 .../utils/process_unit.py start ...` of the unit's tree, which gets the unit's environment."""
        words = (
            self._host_python,
            *ISOLATED,
            f"{unit.tree}/utils/{PROGRAM}",
            "start",
            self._folder(unit.name),
            unit.workdir or ".",
            *(f"{name}={value}" for name, value in unit.labels.items()),
            "--",
            *unit.argv,
        )
        argv = guard_argv(START, self._work, transport, *words)
        compiled = dict.fromkeys(COMPILED, f"{self.scratch(unit.name)}/compiled")
        variables = {**OWN_CODE, **compiled, **unit.env, **unit.secrets}
        started = await self._in_time(transport, argv, variables=variables)
        self._passed(replace(started, argv=words))  # an error shows what a user can type

    async def _remove_all(self, transport: Transport, run_id: str, grace_s: int) -> tuple[str, ...]:
        completed = await self._program(
            transport, "remove", self._units, run_id, str(grace_s), grace_s=grace_s
        )
        return tuple(completed.stdout.split())

    def removal_script(self, run_id: str) -> str:
        words = self._asking("remove", self._units, run_id, "0")
        return f"{shlex.join(words)} <<'{END}'\n{Path(process_unit.__file__).read_text()}\n{END}\n"

    async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
        words = (self._units,) if run_id is None else (self._units, run_id)
        completed = await self._program(transport, "list", *words)
        for line in completed.stderr.splitlines()[:MOST_WARNINGS]:
            LOGGER.warning(f"{transport.host}: {shortened_to_words(line, LONGEST_SAID)}")
        where = f"{transport.host}: what lists the units"
        return tuple(
            parsed(UnitState, object_in(line, where), where) for line in completed.whole_stdout().splitlines()
        )

    async def last_output(self, transport: Transport, name: str, lines: int = 50) -> str:
        # the unit may have put anything in its place: a pipe, a line without an end
        argv = ("sh", "-c", TAIL, self._work, f"{UNITS}/{name}/{OUTPUT}", str(OUTPUT_BYTES))
        completed = await transport.run(argv, timeout=OUTPUT_TIMEOUT_S)
        return "\n".join(completed.stdout.strip().splitlines()[-lines:]) if completed.ok else ""

    def advice(self, kind: FailureClass | None, host: str) -> str:
        if kind is not FailureClass.TASK_REMOVED:
            return ""
        return (
            f"see on {host} who ended its processes: `last`, `journalctl --since -1h`, a batch system's log"
        )

    async def version(self, transport: Transport) -> str:
        """The interpreter's version; it may be missing, or too old."""
        code = f"import sys; print(sys.version.split()[0]); sys.exit(sys.version_info < {OLDEST_PYTHON})"
        completed = await self._checked(transport, (self._host_python, *ISOLATED, "-c", code))
        return f"python {completed.stdout.strip()}"

    def _folder(self, name: str) -> str:
        return f"{self._units}/{name}"

    def _wait_argv(self, name: str) -> tuple[str, ...]:
        # 137 also where the supervisor was killed and nobody knows the code
        return self._asking("wait", self._folder(name))

    def _stop_argv(self, name: str, grace_s: int) -> tuple[str, ...]:
        # the whole tree, not the main process alone
        return self._asking("stop", self._folder(name), str(grace_s))

    def _asking(self, *words: str) -> tuple[str, ...]:
        """The command that reads the program: where nothing may be deployed yet, or what another user has put there."""
        return (self._host_python, *ISOLATED, "-", *words)

    def _inside_argv(self, name: str) -> tuple[str, ...]:
        return ()

    async def _program(self, transport: Transport, *words: str, grace_s: float = 0.0) -> Completed:
        return await self._checked(
            transport, self._asking(*words), stdin=self._commands_stdin(), grace_s=grace_s
        )

    def _commands_stdin(self) -> bytes:
        return Path(process_unit.__file__).read_bytes()

    def _is_gone(self, completed: Completed) -> bool:
        return "the unit was removed" in completed.stderr

    def _remedy(self, completed: Completed) -> str:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        if completed.returncode == 127 or tuple(completed.argv[1:3]) == (*ISOLATED, "-c"):
            return f"install Python {oldest} or later on {completed.host}, or name one with PROCESS_PYTHON"
        return ""

    def _hangs(self, host: str) -> str:
        return (
            f"see on {host} whether `{self._host_python} -V` ends, and whether the disk of {self._units} answers; "
            "another Python is named with PROCESS_PYTHON"
        )
