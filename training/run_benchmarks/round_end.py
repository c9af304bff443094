"""The end of a round on its hosts: units are stopped, logs brought home, and what tasks printed is kept."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from run_benchmarks.commands import run_command
from run_benchmarks.failures import failure_on
from run_benchmarks.follow import KEPT_BYTES
from run_benchmarks.full_disk import NoRoomError
from run_benchmarks.hosts.base import Host
from run_benchmarks.names import FOLLOWED_EVENTS, Node, decisive_log, unit_name
from run_benchmarks.neighbours import look_for_neighbours, notes_on_neighbours
from run_benchmarks.plan.host_ranges import alike
from run_benchmarks.results.evidence import TASK_OUTPUT, start_log_of
from run_benchmarks.round_clocks import read_end
from run_benchmarks.round_meters import finish_meters
from run_benchmarks.round_state import RoundState
from run_benchmarks.run_log import LOGGER
from run_benchmarks.session import Session
from run_benchmarks.stages.collect import collect_folder
from run_benchmarks.stages.collect_listing import LeftOut, note_on
from run_benchmarks.stages.fan_out import errors_of, on_all, raise_first, values_of
from run_benchmarks.stages.run_folder import below_work
from run_benchmarks.stages.watch import Ended, Ending
from run_benchmarks.transports.base import Transport
from utils import monitors
from utils.errors import FlagPerfError, told_of
from utils.numbers import counted
from utils.records import Stage, Verdict

TASK_GRACE_S = 5
# A slow host's monitor must not be killed while it takes its last samples: it has its own limits, and this beside them.
MONITOR_GRACE_S = math.ceil(monitors.STOP_GRACE_S) + 8
GRACES_S = {"task": TASK_GRACE_S, "monitor": MONITOR_GRACE_S}
COLLECT_TIMEOUT_S = 600.0
# A host that is known to be lost is asked for its logs all the same, but not for long.
LOST_COLLECT_TIMEOUT_S = 5.0


class LogsGoneError(FlagPerfError):
    """What a node wrote is on no machine any more."""


class RoundEnd:
    """Ends what runs on the nodes of `state`, whose hosts are `hosts` by node rank; what it sees goes to `state`."""

    def __init__(self, session: Session, state: RoundState, hosts: Sequence[Host]) -> None:
        self.session = session
        self.state = state
        self.hosts = hosts

    def steps(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        """What is to be done, in this order; where a step fails the next is done all the same."""
        return (
            self._read_clocks,
            self._note_neighbours,
            self._stop_units,
            self._stop_meters,
            self._collect,
            self._keep_output,
            self._finish_meters,
        )

    async def _read_clocks(self) -> None:
        await read_end(self.state, self.hosts)

    async def _note_neighbours(self) -> None:
        """What shares the hosts with a round makes its figures doubtful: that goes with them."""
        await look_for_neighbours(self.session, self.state, self.hosts)
        for note in notes_on_neighbours(self.state):
            self.state.warn(note)

    def _transport(self, node: Node) -> Transport:
        return self.hosts[node.rank].transport

    def _ending(self, node: Node) -> Ending | None:
        outcome = self.state.outcome
        return {**outcome.endings, **outcome.dispensable}.get(node.rank) if outcome else None

    async def _stop_units(self) -> None:
        async def stop(node: Node) -> None:
            run, runtime, transport = self.session.run, self.session.runtime, self._transport(node)
            roles = ("monitor",) if isinstance(self._ending(node), Ended) else ("monitor", "task")
            stops = [runtime.stop(transport, unit_name(run, node, role), GRACES_S[role]) for role in roles]
            # all of them to their end: what is still stopping writes to the logs that are collected next
            raise_first(await asyncio.gather(*stops, return_exceptions=True))

        errors = errors_of(await on_all(self.state.nodes, stop))
        for node, error in errors.items():
            self.state.note_lost(node.host, error)
        for hosts, why in alike({node.host: error.message for node, error in errors.items()}):
            LOGGER.warning(f"{hosts}: its units could not be stopped: {why}")

    async def _stop_meters(self) -> None:
        if self.state.meters:
            self.state.meters.stop()

    async def _finish_meters(self) -> None:
        await finish_meters(self.session, self.state)

    async def _collect(self) -> None:
        async def collect(node: Node) -> tuple[LeftOut, ...] | None:
            near, is_lost = self.state.file_systems.reader(node.host), node.host in self.state.lost
            timeout = LOST_COLLECT_TIMEOUT_S if is_lost and not near else COLLECT_TIMEOUT_S
            paths, target = self.session.paths, self.session.log_dir / node.folder
            folder = below_work(paths, paths.node(node))
            # none where the round ended before this node had a folder
            transport = near if near and is_lost else self._transport(node)
            again, sharing = self.state.is_taken_up, len(self.state.nodes)
            return await collect_folder(
                transport,
                paths.work,
                folder,
                target,
                timeout,
                sharing,
                own_logs=node.own_logs,
                is_again=again,
                near=near,
            )

        results = await on_all(self.state.nodes, collect)
        self.state.without_room |= {
            node.rank for node, result in results.items() if _has_no_room(node, result)
        }
        for node, left_out in values_of(results).items():
            if not left_out:
                self._note_gone(node)
            self._note_left_out(node, left_out or ())
        errors = errors_of(results)
        self._forget_followed()
        for node, error in errors.items():
            if self.state.is_taken_up and (self.session.log_dir / node.folder).is_dir():
                self._note_unsure(node, error)
                continue
            self.state.not_collected.add(node.rank)
            self.state.warn(told_of(node.host, error))
            self._fail_without_log(node, error)

    def _note_gone(self, node: Node) -> None:
        """A node that trained had a folder, and a log that was followed; either may have been brought before."""
        brought, log = self.session.log_dir / node.folder, decisive_log(node.case.roles)
        was_followed = node.rank == 0 and (brought.parent / FOLLOWED_EVENTS).is_file()
        lacks_log = was_followed and not (brought / log).is_file()
        if self.state.outcome and (lacks_log or not brought.is_dir()):
            gone = f"{self.session.paths.node(node)}{f'/{log}' if brought.is_dir() else ''}"
            error = LogsGoneError(f"its logs are gone: there is no {gone} any more", where=node.host)
            self.state.warn(f"{node.host}: {error.message}")
            self._fail_without_log(node, error)

    def _note_unsure(self, node: Node, error: FlagPerfError) -> None:
        """What was left out before the controller died it may not have noted."""
        brought = "its logs are here as far as a controller brought them that then died"
        note = f"{brought}; whether that is all of them is not known: {error.message}"
        self.state.warn(f"{node.host}: {note}")
        self._keep(node)
        if not (self.session.log_dir / node.folder / decisive_log(node.case.roles)).is_file():
            self._fail_without_log(node, error)

    def _forget_followed(self) -> None:
        """What was followed is a part of rank 0's log, where that is home."""
        for node in self.state.nodes[:1]:
            folder, followed = self.session.log_dir / node.folder, self.state.followed
            if (folder / decisive_log(node.case.roles)).is_file():
                (folder.parent / FOLLOWED_EVENTS).unlink(missing_ok=True)
            elif followed and followed.left_out:
                left_out = counted(followed.left_out, "event")
                limits = f"it takes {KEPT_BYTES >> 20} MiB at most, and leaves room for later rounds"
                self.state.warn(f"{left_out} of rank 0 are not in {FOLLOWED_EVENTS}: {limits}")

    def _note_left_out(self, node: Node, left_out: Sequence[LeftOut]) -> None:
        session = self.session
        if node.folder in session.kept and not any(item.has_content for item in left_out):
            session.kept.discard(node.folder)  # there was no room for it before the round was taken up
            session.journal.write("collected", folder=node.folder)
        if not left_out:
            return
        stays = self._transport(node).keeps or self.state.without_room  # for which hosts are kept
        note = f"{node.host}: {note_on(left_out, self.session.paths.node(node) if stays else '')}"
        self.state.warn(note)
        if any(item.has_content for item in left_out):
            self._keep(node)
        if decisive_log(node.case.roles) in {item.path for item in left_out}:
            self._fail_without_log(node, FlagPerfError(note))

    def _keep(self, node: Node) -> None:
        """Of its logs something may be on its host alone."""
        self.session.kept.add(node.folder)
        self.session.journal.write("kept", folder=node.folder)

    def _fail_without_log(self, node: Node, error: FlagPerfError) -> None:
        """Global rank 0, or a search's controller, lives on the first node: without its log there is no result."""
        if node.rank == 0 and self.state.outcome and self.state.outcome.all_ended_well:
            there, here = self.session.paths.node(node), self.session.log_dir / node.folder
            failure = self.state.taken_away or failure_on(node.host, Stage.COLLECT, error)
            remedy = (
                f"copy {decisive_log(node.case.roles)}, and what else is missing, "
                f"from {there} on {node.host} to {here}; then judge the round by it: "
                f"{run_command('show', str(self.session.log_dir), '--rescore')}"
            )
            is_gone = self.state.taken_away or isinstance(error, LogsGoneError)
            is_out_of_reach = is_gone or failure.verdict is Verdict.UNREACHABLE
            stays = self._transport(node).keeps and not is_out_of_reach
            self.state.failure = replace(failure, remedy=remedy) if stays else failure

    async def _keep_output(self) -> None:
        """What tasks printed that failed before they opened their log: as long as their units are there."""

        async def keep(node: Node) -> None:
            ending, folder = self._ending(node), self.session.log_dir / node.folder
            failed = isinstance(ending, Ended) and ending.code != 0
            start_log = start_log_of(node.case.settings.framework_name, folder)
            if not failed or node.rank in self.state.not_collected or _has_text(start_log):
                return
            name = unit_name(self.session.run, node, "task")
            text = await self.session.runtime.last_output(self._transport(node), name)
            if text:
                folder.mkdir(parents=True, exist_ok=True)
                shown = self.session.plan.secrets.hide(text)
                (folder / TASK_OUTPUT).write_text(f"{shown}\n", encoding="utf-8")

        errors = errors_of(await on_all(self.state.nodes, keep))
        for hosts, why in alike({node.host: error.message for node, error in errors.items()}):
            LOGGER.warning(f"{hosts}: what its task printed is not known: {why}")


def _has_no_room(node: Node, collected: tuple[LeftOut, ...] | FlagPerfError | None) -> bool:
    """Whether the controller's disk is full for a node's logs: one of them, or the log that its round is judged by.

    A task may name a file of any size like a log: one that is larger than what is free makes no disk full.
    """
    if isinstance(collected, FlagPerfError):
        return isinstance(collected, NoRoomError)
    decisive = decisive_log(node.case.roles) if node.rank == 0 else ""
    return any(item.is_full or (item.has_no_room and item.path == decisive) for item in collected or ())


def _has_text(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
