"""The container runtime: a unit is a container of the engine that CONTAINER_ENGINE names."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from run_benchmarks.plan.records import RunSettings
from run_benchmarks.run_log import LOGGER
from run_benchmarks.runtimes.base import Mount, Unit, UnitState
from run_benchmarks.runtimes.engine import LABEL_PREFIX, engine_of
from run_benchmarks.transports.base import CommandError, Completed, Transport
from utils.errors import FlagPerfError

REMOVE_ATTEMPTS = 20
REMOVE_PAUSE_S = 0.25


class ContainerRuntime:
    """Containers, by the engine's command line: every command can be shown to the user and typed by hand."""

    name = "docker"
    python = "python3"  # the image's

    def __init__(self, run: RunSettings) -> None:
        self._engine = engine_of(run.container_engine)
        self._limited: set[str] = set()  # hosts whose engine may not raise limits

    def path_inside(self, mounts: Sequence[Mount], host_path: str) -> str:
        """Where a container sees `host_path`.

        Raises:
            FlagPerfError: no mount holds it.
        """
        path = PurePosixPath(host_path)
        holding = [mount for mount in mounts if path.is_relative_to(mount.host)]
        if not holding:
            raise FlagPerfError(
                f"no mount shows {host_path} inside the container",
                remedy="mount the folder that holds it",
            )
        nearest = max(holding, key=lambda mount: len(PurePosixPath(mount.host).parts))
        return str(PurePosixPath(nearest.inside) / path.relative_to(nearest.host))

    def start_argv(self, unit: Unit) -> tuple[str, ...]:
        """`docker run --detach ...`."""
        return self._engine.start(unit)

    def wait_argv(self, name: str) -> tuple[str, ...]:
        """`docker wait NAME`."""
        return self._engine.wait(name)

    def stop_argv(self, name: str, grace_s: int) -> tuple[str, ...]:
        """`docker stop -t GRACE NAME`."""
        return self._engine.stop(name, grace_s)

    async def start(self, transport: Transport, unit: Unit) -> None:
        """Start the container.

        Raises:
            CommandError: the engine refused: a container of this name exists, no such image, a bad option.
        """
        may_raise = transport.host not in self._limited
        completed = await transport.run(self._engine.start(unit, raise_limits=may_raise))
        if may_raise and not completed.ok and "rlimit" in completed.stderr.lower():
            completed = await self._start_limited(transport, unit)
        if not completed.ok:
            raise CommandError(completed, self._start_remedy(completed, unit))

    async def wait(self, transport: Transport, name: str) -> int:
        """The exit code. `docker wait` is an event, not a poll; where contact is lost it can be asked again.

        Raises:
            CommandError: there is no such container.
        """
        completed = await transport.run(self.wait_argv(name))
        lines = completed.stdout.split()
        if not completed.ok or not lines:
            raise CommandError(completed, self._engine.remedy(completed))
        return int(lines[-1])

    async def stop(self, transport: Transport, name: str, grace_s: int) -> None:
        """End the container; it is no error if it has ended or is gone."""
        completed = await transport.run(self.stop_argv(name, grace_s))
        if not completed.ok and not self._engine.is_gone(completed):
            raise CommandError(completed, self._engine.remedy(completed))

    async def remove_all(self, transport: Transport, run_id: str, grace_s: int = 0) -> tuple[str, ...]:
        """End and remove every container of the run on this host; returns the names of those that were there."""
        units = await self.list_units(transport, run_id)
        if grace_s:
            running = [unit.name for unit in units if unit.running]
            await asyncio.gather(*(self.stop(transport, name, grace_s) for name in running))
        await self._remove_until_none(transport, run_id)
        return tuple(unit.name for unit in units)

    async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
        """FlagPerf's containers on this host, of one run or of all."""
        ids = await self._ids(transport, run_id)
        if not ids:
            return ()
        # exits with 1 where one of them has vanished meanwhile, and describes the others all the same
        completed = await transport.run(self._engine.describe(ids))
        if not completed.ok and not self._engine.is_gone(completed):
            raise CommandError(completed, self._engine.remedy(completed))
        return tuple(_state(line) for line in completed.stdout.splitlines() if line.startswith("["))

    async def last_output(self, transport: Transport, name: str, lines: int = 50) -> str:
        """The end of what the container's main process printed; empty if it is gone."""
        completed = await transport.run(self._engine.output(name, lines))
        if not completed.ok and not self._engine.is_gone(completed):
            raise CommandError(completed, self._engine.remedy(completed))
        return completed.last_lines(lines) if completed.ok else ""

    async def version(self, transport: Transport) -> str:
        """The engine's version.

        Raises:
            CommandError: not installed, not running, or not allowed, each with its remedy.
        """
        completed = await transport.run(self._engine.version())
        if not completed.ok or not completed.stdout.strip():
            raise CommandError(completed, self._engine.remedy(completed))
        return completed.stdout.strip()

    async def _start_limited(self, transport: Transport, unit: Unit) -> Completed:
        """Start with the engine's own limits, where it may not raise them (rootless, in a container)."""
        if transport.host not in self._limited:
            LOGGER.warning(
                f"{transport.host}: the engine may not raise the memlock and stack limits; its own stay, "
                "which may not do for RDMA"
            )
        self._limited.add(transport.host)
        await transport.run(self._engine.remove([unit.name]))
        return await transport.run(self._engine.start(unit, raise_limits=False))

    async def _ids(self, transport: Transport, run_id: str | None) -> tuple[str, ...]:
        completed = await transport.run(self._engine.list_ids(run_id))
        if not completed.ok:
            raise CommandError(completed, self._engine.remedy(completed))
        return tuple(completed.stdout.split())

    async def _remove_until_none(self, transport: Transport, run_id: str) -> None:
        """Remove until none is listed: a removal that someone else began takes its time."""
        completed = None
        for _ in range(REMOVE_ATTEMPTS):
            ids = await self._ids(transport, run_id)
            if not ids:
                return
            if completed is not None:
                await asyncio.sleep(REMOVE_PAUSE_S)
            completed = await transport.run(self._engine.remove(ids))
        if completed is not None and await self._ids(transport, run_id):
            raise CommandError(completed, f"remove them by hand: {shlex.join(completed.argv)}")

    def _start_remedy(self, completed: Completed, unit: Unit) -> str:
        if "already in use" in completed.stderr:
            return f"a unit of this name exists: {shlex.join(self._engine.remove([unit.name]))}"
        return self._engine.remedy(completed)


def _state(line: str) -> UnitState:
    name, running, labels = json.loads(line)
    ours = {key: value for key, value in (labels or {}).items() if key.startswith(LABEL_PREFIX)}
    return UnitState(name.removeprefix("/"), ours, bool(running))
