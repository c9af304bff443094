"""What a runtime is: what a task runs in (containers, or plain processes)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from run_benchmarks.transports.base import Transport


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
    options: engine options (ACCE_CONTAINER_OPT or the vendor's), for containers only.
    host_namespaces: see all of the host's processes (for monitors).
    """

    name: str
    labels: Mapping[str, str]
    image: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    options: tuple[str, ...] = ()
    shm_size: str = ""
    workdir: str = ""
    host_namespaces: bool = False


@dataclass(frozen=True)
class UnitState:
    """A unit that exists on a host, running or ended."""

    name: str
    labels: Mapping[str, str]
    running: bool


class Runtime(Protocol):
    """Units on hosts. The `*_argv` verbs are pure, so that a plan can show exactly what a run would do.

    python: the interpreter that a unit starts Python programs with.
    """

    name: str
    python: str

    def path_inside(self, mounts: Sequence[Mount], host_path: str) -> str:
        """Where a unit sees `host_path`: through its mounts in a container, unchanged for a process."""
        ...

    def start_argv(self, unit: Unit) -> tuple[str, ...]:
        """The command that starts the unit in the background."""
        ...

    def wait_argv(self, name: str) -> tuple[str, ...]:
        """The command that returns when the unit has ended and prints its exit code."""
        ...

    def stop_argv(self, name: str, grace_s: int) -> tuple[str, ...]:
        """The command that ends the unit: SIGTERM, then SIGKILL after `grace_s` seconds."""
        ...

    async def start(self, transport: Transport, unit: Unit) -> None:
        """Start the unit. Raises CommandError where the engine refuses it."""
        ...

    async def wait(self, transport: Transport, name: str) -> int:
        """The unit's exit code, once it has ended. Raises TransportError where contact is lost meanwhile."""
        ...

    async def stop(self, transport: Transport, name: str, grace_s: int) -> None:
        """End the unit; it is no error if it has ended or is gone."""
        ...

    async def remove_all(self, transport: Transport, run_id: str, grace_s: int = 0) -> tuple[str, ...]:
        """End and remove every unit of the run on this host; returns the names of those that were there. Idempotent."""
        ...

    async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
        """FlagPerf's units on this host, of one run or of all."""
        ...

    async def last_output(self, transport: Transport, name: str, lines: int = 50) -> str:
        """The end of what the unit's main process printed itself, for evidence; empty if there is none."""
        ...

    async def version(self, transport: Transport) -> str:
        """The engine's version. Raises CommandError with a remedy where it does not answer."""
        ...
