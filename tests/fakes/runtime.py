"""FAKE runtime: units start, end and are listed as a test says, and nothing runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence

from run_benchmarks.runtimes.base import Mount, Unit, UnitState
from run_benchmarks.transports.base import Transport, TransportError
from utils.errors import FlagPerfError
from utils.records import FailureClass


class FakeRuntime:
    """In the place of run_benchmarks.runtimes.base.Runtime.

    refuse: part of a unit's name -> the error that its start ends with. code: how every unit ends; or ends: how a
    unit's waits end, one after the other (without an entry they never do). gone: hosts that are out of reach.
    `units` are what is listed, `error` is raised when the host is asked about itself, `cause` is why a unit was killed.
    """

    name = "fake"
    python = sys.executable

    def __init__(
        self,
        refuse: Mapping[str, Exception] | None = None,
        code: int = 0,
        *,
        ends: Mapping[str, Sequence[int | Exception]] | None = None,
        gone: Sequence[str] = (),
    ) -> None:
        self.refuse = refuse or {}
        self.code = code
        self.ends = None if ends is None else {name: list(ends[name]) for name in ends}
        self.gone = set(gone)
        self.units: tuple[UnitState, ...] = ()
        self.error: FlagPerfError | None = None
        self.cause: FailureClass | None = None
        self.calls: list[tuple[str, str]] = []
        self.waits: list[str] = []
        self.removed: list[tuple[str, str]] = []
        self.graces_s: dict[str, int] = {}

    def path_inside(self, mounts: Sequence[Mount], host_path: str) -> str:
        return host_path

    async def start(self, transport: Transport, unit: Unit) -> None:
        for part, error in self.refuse.items():
            if part in unit.name:
                raise error
        # what is refused is refused long before its neighbour runs
        await asyncio.sleep(0.3 if "node1" in unit.name else 0)
        self.calls.append(("started", unit.name))

    async def why_killed(self, transport: Transport, name: str) -> FailureClass | None:
        return self.cause

    def advice(self, kind: FailureClass | None, host: str) -> str:
        return f"ask {host} of {kind.value}" if kind else ""

    async def wait(self, transport: Transport, name: str) -> int:
        self.waits.append(name)
        await asyncio.sleep(0)
        if self.ends is None:
            return self.code
        if not self.ends.get(name):
            await asyncio.Event().wait()
        end = self.ends[name].pop(0)
        if isinstance(end, Exception):
            raise end
        return end

    async def stop(self, transport: Transport, name: str, grace_s: int) -> None:
        self.calls.append(("stopped", name))
        self.graces_s[name] = grace_s

    async def last_output(self, transport: Transport, name: str, lines: int = 50) -> str:
        self.calls.append(("asked for its output", name))
        return f"{name}: no such folder"

    async def version(self, transport: Transport) -> str:
        if self.error:
            raise self.error
        return "20.10"

    async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
        if self.error:
            raise self.error
        return self.units

    async def remove_all(self, transport: Transport, run_id: str, grace_s: int = 0) -> tuple[str, ...]:
        if transport.host in self.gone:
            raise TransportError("no route to host", where=transport.host)
        self.calls.append(("removed", transport.host))
        self.removed.append((transport.host, run_id))
        return ()
