"""The container runtime: a unit is a container of the engine that CONTAINER_ENGINE names."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from run_benchmarks.host_log import log_of_host
from run_benchmarks.names import LABEL_RUN, LABELS, work_folder
from run_benchmarks.plan.records import RunSettings
from run_benchmarks.reading import first_problem
from run_benchmarks.runtimes.base import LIMIT_S, Mount, Runtime, Unit, UnitState
from run_benchmarks.runtimes.engine import engine_of, mount_targets
from run_benchmarks.runtimes.engine_logs import told_by
from run_benchmarks.runtimes.submounts import with_submounts
from run_benchmarks.stages.work_folder import STILL_OWN, in_work_folder
from run_benchmarks.transports.base import CommandError, Completed, Transport
from utils.errors import FlagPerfError
from utils.records import FailureClass
from utils.text_files import shortened

SCRATCH = "/tmp/flagperf-scratch"  # noqa: S108 - the container's own, which nobody else writes to
LONGEST_LABEL = LONGEST_SHOWN = 200
REMOVE_ATTEMPTS = 20
REMOVE_PAUSE_S = 0.25
_Values = Annotated[list[str], Field(min_length=len(LABELS), max_length=len(LABELS))]
_UNIT: TypeAdapter[tuple[str, bool, list[str]]] = TypeAdapter(tuple[str, bool, _Values])
# A line of JSON a unit. Of its labels our own, and no more of each: an image brings any number of any length.
_LABELS = ",".join(
    f'{{{{json (printf "%.{LONGEST_LABEL}s" (index .Config.Labels "{name}"))}}}}' for name in LABELS
)
KILLED_FIELDS, GOING = "{{.State.OOMKilled}} {{.State.Status}}", ("removing", "dead")
CONTAINER_ID = re.compile(r"[0-9a-f]{64}")
UNIT_FIELDS = f"[{{{{json .Name}}}},{{{{json .State.Running}}}},[{_LABELS}]]"


class ContainerRuntime(Runtime):
    """Containers, by the engine's command line: every command can be shown to the user and typed by hand."""

    name = "docker"
    python = "python3"  # the image's

    def __init__(self, run: RunSettings) -> None:
        self._engine, self._work = engine_of(run.container_engine), work_folder(run)
        self.units_seen = f"the ssh user's containers of {run.container_engine} with the label {LABEL_RUN}"
        self._limited: set[str] = set()  # hosts whose engine may not raise limits

    def path_inside(self, mounts: Sequence[Mount], host_path: str) -> str:
        return seen_through(mounts, host_path)

    def scratch(self, name: str) -> str:
        return SCRATCH

    async def start(self, transport: Transport, unit: Unit) -> None:
        """`docker run --detach ...`; where the engine may not raise limits, with its own."""
        if any(PurePosixPath(mount.host).is_relative_to(self._work) for mount in unit.mounts):
            await in_work_folder(transport, self._work, "", timeout=LIMIT_S, enter=STILL_OWN)
        taken = mount_targets(unit.options)
        unit = replace(unit, mounts=await with_submounts(transport, self._engine, unit.mounts, taken))
        may_raise = transport.host not in self._limited
        argv = self._engine.start(unit, raise_limits=may_raise)
        completed = await self._in_time(transport, argv, variables=unit.secrets)
        if may_raise and not completed.ok and self._engine.refuses_limits(completed):
            completed = await self._start_limited(transport, unit)
        if not completed.ok:
            exists = "already in use" in completed.stderr
            remove = f"a unit of this name exists: {shlex.join(self._engine.remove([unit.name]))}"
            if exists:
                raise CommandError(completed, remove)
            self._passed(completed)

    async def _remove_all(self, transport: Transport, run_id: str, grace_s: int) -> tuple[str, ...]:
        units = await self.list_units(transport, run_id)
        if grace_s:
            running = [unit.name for unit in units if unit.running]
            await asyncio.gather(*(self.stop(transport, name, grace_s) for name in running))
        await self._remove_until_none(transport, run_id)
        return tuple(unit.name for unit in units)

    def removal_script(self, run_id: str) -> str:
        remove = shlex.join(self._engine.remove([]))
        return f'ids=$({shlex.join(self._list_argv(run_id))}); [ -z "$ids" ] || {remove} $ids\n'

    async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
        ids = await self._ids(transport, run_id)
        if not ids:
            return ()
        argv = (self._engine.command, "inspect", "--type=container", f"--format={UNIT_FIELDS}", *ids)
        # fails where one of them has vanished meanwhile, and describes the others all the same
        completed = await self._checked(transport, argv, may_be_gone=True)
        return tuple(_state(line) for line in completed.whole_stdout().splitlines() if line.startswith("["))

    async def last_output(self, transport: Transport, name: str, lines: int = 50) -> str:
        argv = (self._engine.command, "logs", "--tail", str(lines), name)
        with self.cleaning_up(transport.host):
            completed = await self._checked(transport, argv, may_be_gone=True)
        return completed.last_lines(lines) if completed.ok else ""

    async def why_killed(self, transport: Transport, name: str) -> FailureClass | None:
        argv = (self._engine.command, "inspect", "--type=container", f"--format={KILLED_FIELDS}", name)
        completed = await self._in_time(transport, argv)
        of_memory, _, status = completed.stdout.strip().partition(" ")
        if status in GOING or self._is_gone(completed):
            return FailureClass.TASK_REMOVED
        return FailureClass.CONTAINER_OUT_OF_MEMORY if of_memory == "true" else None

    def advice(self, kind: FailureClass | None, host: str) -> str:
        return told_by(self._engine, kind).format(engine=self._engine.command, host=host)

    async def version(self, transport: Transport) -> str:
        """The engine's version; where it does not answer, the error says whether it is installed, runs, is allowed."""
        return (await self._checked(transport, self._engine.version())).stdout.strip()

    def _wait_argv(self, name: str) -> tuple[str, ...]:
        return (self._engine.command, "wait", name)

    def _stop_argv(self, name: str, grace_s: int) -> tuple[str, ...]:
        return (self._engine.command, "stop", "-t", str(grace_s), name)

    def _inside_argv(self, name: str) -> tuple[str, ...]:
        return (self._engine.command, "exec", "--interactive", name)

    def _is_gone(self, completed: Completed) -> bool:
        return self._engine.is_gone(completed)

    def _is_out_of_order(self, completed: Completed) -> bool:
        return self._engine.is_out_of_order(completed)

    def _remedy(self, completed: Completed) -> str:
        return self._engine.remedy(completed)

    def _hangs(self, host: str) -> str:
        return self._engine.hangs(host)

    async def _start_limited(self, transport: Transport, unit: Unit) -> Completed:
        """Start with the engine's own limits, where it may not raise them (rootless, in a container)."""
        if transport.host not in self._limited:
            limits = "locked memory, stack and processes"
            text = f"the engine may not raise the limits of {limits}; its own stay"
            log_of_host("INFO", transport.host, text)
        self._limited.add(transport.host)
        await self._in_time(transport, self._engine.remove([unit.name]))
        return await self._in_time(
            transport, self._engine.start(unit, raise_limits=False), variables=unit.secrets
        )

    async def _ids(self, transport: Transport, run_id: str | None) -> tuple[str, ...]:
        """Of the run's containers, or of all of FlagPerf's, whatever state they are in."""
        listed = await self._checked(transport, self._list_argv(run_id))
        words = listed.whole_stdout().split()
        ids = tuple(filter(CONTAINER_ID.fullmatch, words))  # they become words of commands
        others = [word for word in words if not CONTAINER_ID.fullmatch(word)]
        if others and not ids:
            raise CommandError(listed, f"see what this command prints on {transport.host}: no container's ID")
        if others:  # of a wrapper, say: the containers are not left for it
            shown = shortened(" ".join(others), LONGEST_SHOWN)
            text = f"{shlex.join(listed.argv)} prints what is no container's ID, and is passed over: {shown}"
            log_of_host("WARNING", transport.host, text)
        return ids

    def _list_argv(self, run_id: str | None) -> tuple[str, ...]:
        label = LABEL_RUN if run_id is None else f"{LABEL_RUN}={run_id}"
        return (self._engine.command, "ps", "--all", "--quiet", "--no-trunc", f"--filter=label={label}")

    async def _remove_until_none(self, transport: Transport, run_id: str) -> None:
        """Remove until none is listed: a removal that someone else began takes its time."""
        completed = None
        for _ in range(REMOVE_ATTEMPTS):
            ids = await self._ids(transport, run_id)
            if not ids:
                return
            if completed is not None:
                await asyncio.sleep(REMOVE_PAUSE_S)
            completed = await self._in_time(transport, self._engine.remove(ids))
        if completed is not None and await self._ids(transport, run_id):
            raise CommandError(completed, f"remove them by hand: {shlex.join(completed.argv)}")


def seen_through(mounts: Sequence[Mount], host_path: str) -> str:
    """Where a container with these mounts sees a path of the host."""
    path = PurePosixPath(host_path)
    holding = [mount for mount in mounts if path.is_relative_to(mount.host)]
    if not holding:
        message = f"no mount shows {host_path} inside the container"
        raise FlagPerfError(message, remedy="mount the folder that holds it")
    nearest = max(holding, key=lambda mount: len(PurePosixPath(mount.host).parts))
    return str(PurePosixPath(nearest.inside) / path.relative_to(nearest.host))


def _state(line: str) -> UnitState:
    try:
        name, running, values = _UNIT.validate_json(line, strict=True)
    except ValidationError as error:
        message = f"the engine describes a container as nobody understands it: {line[:80]!r}: {first_problem(error)}"
        raise FlagPerfError(message, remedy="see whether its `inspect` answers as Docker's does") from error
    labels = {key: value for key, value in zip(LABELS, values, strict=True) if value}
    return UnitState(name.removeprefix("/"), labels, running)
