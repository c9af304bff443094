"""What a runtime is: what a task runs in (containers, or plain processes)."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from run_benchmarks.transports.base import CommandError, CommandTimeoutError, Completed, Transport
from utils.numbers import whole
from utils.records import FailureClass

# So long a command may take that starts, ends, lists or describes units: an engine may first have to read a big image
# from the disk, or wait for a process that is slow to die. One that takes longer hangs.
LIMIT_S = 300.0
# So long all commands of a clean-up of a host may take together; and so long where an earlier one was not done in time:
# the rounds to come wait for it.
CLEAN_UP_S, AGAIN_S = 300.0, 10.0
_HANGING: set[str] = set()  # the hosts where they were not
_ENDS: ContextVar[float] = ContextVar("when a clean-up ends, by the monotonic clock", default=math.inf)


class EngineError(CommandError):
    """What runs the units does not answer, or broke off what it was asked."""

    failure_class = FailureClass.ENGINE_FAILED


class UnitGoneError(CommandError):
    """There is no such unit, or none any more."""

    failure_class = FailureClass.TASK_REMOVED


@dataclass(frozen=True)
class Mount:
    """A host path and where it is seen inside."""

    host: str
    inside: str
    read_only: bool = True


@dataclass(frozen=True)
class Unit:
    """One task or monitor on one host.

    name: unique on the cluster: it holds the run, case, round and node rank.
    labels: `flagperf.run`, `flagperf.case`, `flagperf.round`, `flagperf.node_rank`, `flagperf.role`.
    argv: the main process; when it ends the unit has ended, with its exit code.
    secrets: more of its environment, which stands in no argument.
    options: engine options (ACCE_CONTAINER_OPT or the vendor's), for containers only; they win.
    tree: where it sees FlagPerf's code.
    capabilities: those of the container's root; it has no others, but for what `options` add.
    host_network: be on the network as the host is, by its name; else there is no network.
    """

    name: str
    labels: Mapping[str, str]
    image: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounts: tuple[Mount, ...] = ()
    options: tuple[str, ...] = ()
    shm_size: str = ""
    tree: str = ""
    workdir: str = ""
    capabilities: tuple[str, ...] = ()
    host_network: bool = False


@dataclass(frozen=True)
class UnitState:
    """A unit that exists on a host, running or ended. state: a scheduler's word for how it stands with it, if any."""

    name: str
    labels: Mapping[str, str]
    running: bool
    state: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.state or ('running' if self.running else 'ended')})"


class Runtime(ABC):
    """Units on hosts. A command that fails raises CommandError, with its remedy; contact that is lost, TransportError.
    Only waiting for a unit may take as long as it takes: another command that hangs is ended, CommandTimeoutError.

    python: the interpreter that a unit starts Python programs with.
    units_seen: where on a host units are looked for, to be read by the user.
    """

    name: str
    python: str
    units_seen: str

    @abstractmethod
    def path_inside(self, mounts: Sequence[Mount], host_path: str) -> str:
        """Where a unit sees `host_path`: through its mounts in a container, unchanged for a process."""

    @abstractmethod
    def scratch(self, name: str) -> str:
        """A folder that the unit `name` may make and write, as it sees it; it goes with the unit."""

    @abstractmethod
    async def start(self, transport: Transport, unit: Unit) -> None:
        """Start the unit in the background. One whose name is taken is refused."""

    async def wait(self, transport: Transport, name: str) -> int:
        """The unit's exit code, once it has ended: an event, not a poll. May be asked again where contact was lost."""
        completed = self._passed(await transport.run(self._wait_argv(name), stdin=self._commands_stdin()))
        code = whole([" ", *completed.stdout.split()][-1])
        if code is None:
            remedy = (
                f"see on {transport.host} what this command prints; it should end with the unit's exit code"
            )
            raise CommandError(completed, remedy)
        return code

    async def why_killed(self, transport: Transport, name: str) -> FailureClass | None:
        """Why a unit was ended by SIGKILL, as far as what runs it tells; to be asked at once."""
        return None

    def advice(self, kind: FailureClass | None, host: str) -> str:
        """Where on `host` it is told why a unit ended by what runs it; empty where nothing tells more of this kind."""
        return ""

    async def stop(self, transport: Transport, name: str, grace_s: int) -> None:
        """End the unit: SIGTERM, SIGKILL after `grace_s` seconds. It is no error if it has ended or is gone."""
        with self.cleaning_up(transport.host, grace_s):
            argv, stdin = self._stop_argv(name, grace_s), self._commands_stdin()
            await self._checked(transport, argv, stdin=stdin, grace_s=grace_s, may_be_gone=True)

    async def remove_all(self, transport: Transport, run_id: str, grace_s: int = 0) -> tuple[str, ...]:
        """End and remove every unit of the run on this host; returns the names of those that were there. Idempotent."""
        with self.cleaning_up(transport.host, grace_s):
            return await self._remove_all(transport, run_id, grace_s)

    def removal_script(self, run_id: str) -> str:
        """A shell script that removes every unit of the run where it is executed, as `remove_all` does; or empty."""
        return ""

    @contextmanager
    def cleaning_up(self, host: str, grace_s: float = 0.0) -> Iterator[None]:
        """One limit of time for all of the runtime's commands in the block, which are to leave `host` clean."""
        if math.isfinite(_ENDS.get()):  # a part of another one
            yield
            return
        limit = grace_s + (AGAIN_S if host in _HANGING else CLEAN_UP_S)
        token = _ENDS.set(time.monotonic() + limit)
        try:
            yield
            _HANGING.discard(host)
        except CommandTimeoutError as error:
            _HANGING.add(host)
            message = f"{error.message}; a clean-up of the host has {limit:g} s in all"
            raise CommandTimeoutError(message, where=error.where, remedy=error.remedy) from error
        finally:
            _ENDS.reset(token)

    @abstractmethod
    async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
        """FlagPerf's units on this host, of one run or of all."""

    @abstractmethod
    async def last_output(self, transport: Transport, name: str, lines: int = 50) -> str:
        """The end of what the unit's main process printed itself, for evidence; empty if there is none."""

    async def run_inside(
        self, transport: Transport, name: str, program: bytes, *words: str, timeout: float
    ) -> Completed:
        """Run a Python program, which is given by its source, beside the unit's processes and as their user.

        Raises:
            CommandTimeoutError: it was not done within `timeout` seconds.
        """
        argv = (*self._inside_argv(name), self.python, "-I", "-", *words)
        return self._passed(await transport.run(argv, stdin=program, timeout=timeout))

    @abstractmethod
    async def version(self, transport: Transport) -> str:
        """The version of what runs the units, which shows that it answers."""

    @abstractmethod
    async def _remove_all(self, transport: Transport, run_id: str, grace_s: int) -> tuple[str, ...]:
        """See `remove_all`."""

    @abstractmethod
    def _wait_argv(self, name: str) -> tuple[str, ...]:
        """The command that returns when the unit has ended; it prints the unit's exit code as its last word."""

    @abstractmethod
    def _stop_argv(self, name: str, grace_s: int) -> tuple[str, ...]:
        """The command that ends the unit."""

    def _commands_stdin(self) -> bytes | None:
        """What the commands that wait for a unit and end it read."""
        return None

    @abstractmethod
    def _inside_argv(self, name: str) -> tuple[str, ...]:
        """What stands before a command that is to run where the unit's processes do; it reads its standard input."""

    @abstractmethod
    def _is_gone(self, completed: Completed) -> bool:
        """Whether a command failed because there is no such unit."""

    def _is_out_of_order(self, completed: Completed) -> bool:
        """Whether a command failed because what runs the units does not answer."""
        return False

    @abstractmethod
    def _remedy(self, completed: Completed) -> str:
        """What to do about a command that failed; empty where nothing is known."""

    @abstractmethod
    def _hangs(self, host: str) -> str:
        """What to do about commands that do not end on a host."""

    async def _in_time(
        self,
        transport: Transport,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        variables: Mapping[str, str] | None = None,
        grace_s: float = 0.0,
    ) -> Completed:
        limit = min(LIMIT_S + grace_s, max(0.0, _ENDS.get() - time.monotonic()))
        try:
            return await transport.run(argv, stdin=stdin, variables=variables, timeout=limit)
        except CommandTimeoutError as error:
            remedy = self._hangs(transport.host)
            raise CommandTimeoutError(error.message, where=error.where, remedy=remedy) from error

    async def _checked(
        self,
        transport: Transport,
        argv: Sequence[str],
        *,
        stdin: bytes | None = None,
        variables: Mapping[str, str] | None = None,
        grace_s: float = 0.0,
        may_be_gone: bool = False,
    ) -> Completed:
        completed = await self._in_time(transport, argv, stdin=stdin, variables=variables, grace_s=grace_s)
        return self._passed(completed, may_be_gone=may_be_gone)

    def _passed(self, completed: Completed, *, may_be_gone: bool = False) -> Completed:
        if completed.ok:
            return completed
        if self._is_gone(completed):
            if may_be_gone:
                return completed
            raise UnitGoneError(completed, self._remedy(completed))
        kind = EngineError if self._is_out_of_order(completed) else CommandError
        raise kind(completed, self._remedy(completed))
