"""One round of one case: deploy, image, launch, wait, collect, clean up, judge. Failure is a result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from run_benchmarks.failures import StageFailed, failure_on, interrupted
from run_benchmarks.follow import follow_events
from run_benchmarks.frameworks import open_framework
from run_benchmarks.images.base import BuildSite
from run_benchmarks.images.build import build_name
from run_benchmarks.images.layers import plan_image
from run_benchmarks.names import Node, nodes_of, unit_name
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.results.evidence import TASK_OUTPUT, start_log_of
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.round_state import RoundState, conclude
from run_benchmarks.run_log import LOGGER
from run_benchmarks.session import Interrupted, Session, remove_units, unless_interrupted
from run_benchmarks.stages.checks import DROP_CACHES
from run_benchmarks.stages.collect import collect_folder
from run_benchmarks.stages.deploy import deploy_tree
from run_benchmarks.stages.fan_out import errors_of, on_all, values_of
from run_benchmarks.stages.image import ImageStage
from run_benchmarks.stages.launch import Launch
from run_benchmarks.stages.network import interface_to, peer_of
from run_benchmarks.stages.watch import Ended, Outcome, Watch
from run_benchmarks.transports import LOCALHOST
from run_benchmarks.transports.base import TransportError, checked
from utils.errors import FlagPerfError
from utils.records import Stage

T = TypeVar("T")
STOP_GRACE_S = 5
COLLECT_TIMEOUT_S = 600.0
# A host that is known to be lost is asked for its logs all the same, but not for long.
LOST_COLLECT_TIMEOUT_S = 5.0


class Round:
    """Runs one round and leaves nothing behind on any path out."""

    def __init__(self, session: Session, case: CasePlan, number: int) -> None:
        self.session = session
        self.case = case
        self.number = number
        self.nodes = nodes_of(case, number)
        self.framework = open_framework(case.settings.framework)
        self.state = RoundState()

    async def run(self) -> RoundResult:
        """The round's result. When the session is interrupted it is INTERRUPTED, and all is cleaned up."""
        started = datetime.now().astimezone().isoformat(timespec="seconds")
        begin = time.monotonic()
        self._record("round_started")
        self.session.progress.round_started(self.nodes, self.state.training)
        try:
            await unless_interrupted(self.session.interrupt, self._train())
        except StageFailed as stopped:
            self.state.failure = stopped.failure
        except Interrupted:
            self.state.failure = interrupted(self.state.stage)
        except Exception as error:
            self.state.note_error(error)
        time_s = await self._finish() - begin
        seen = self.state.observed(
            self.nodes, continue_from=self.session.plan.continue_from, started=started, time_s=time_s
        )
        folder = self.session.log_dir / self.case.settings.name / f"round{self.number}"
        result = conclude(self.case, seen, folder)
        self._record("round_ended", verdict=result.verdict.value)
        self.session.progress.round_ended(result)
        return result

    async def _train(self) -> None:
        with self._stage(Stage.DEPLOY):
            await self._everywhere(self._prepare_host)
        with self._stage(Stage.IMAGE):
            await self._provide_image()
        with self._stage(Stage.LAUNCH):
            interfaces = await self._everywhere(self._interface)
            await self._everywhere(lambda node: self._start(node, interfaces[node]))
        with self._stage(Stage.TRAIN):
            self.state.outcome = await self._watch()

    async def _finish(self) -> float:
        """Stop what still runs, bring the logs home, remove the units: on every path out.

        Returns:
            When the logs were home, on the monotonic clock.
        """
        if self.state.outcome:
            self.state.lost |= {self.case.hosts[rank] for rank in self.state.outcome.out_of_contact}
        with self._stage(Stage.COLLECT):
            await self._in_any_case(self._stop_units())
            await self._in_any_case(self._collect())
            await self._in_any_case(self._keep_output())
        collected_at = time.monotonic()
        with self._stage(Stage.CLEAN_UP):
            await self._in_any_case(self._remove_units())
        return collected_at

    async def _in_any_case(self, work: Awaitable[None]) -> None:
        """Do `work`; whatever goes wrong in it, what comes after it is done too."""
        try:
            await work
        except Exception as error:
            self.state.note_error(error)

    async def _remove_units(self) -> None:
        failed = await remove_units(self.session, self.case.hosts)
        self.state.notes += [f"units of this run may be left on {host}" for host in failed]

    @contextmanager
    def _stage(self, stage: Stage) -> Iterator[None]:
        self.state.stage = stage
        self._record("stage", stage=stage.value)
        self.session.progress.stage(None, stage.value)
        begin = time.monotonic()
        try:
            yield
        finally:
            self.state.times[stage.value] = round(time.monotonic() - begin, 3)

    def _record(self, event: str, **facts: object) -> None:
        self.session.journal.write(event, case=self.case.settings.name, round=self.number, **facts)

    async def _everywhere(self, work: Callable[[Node], Awaitable[T]]) -> dict[Node, T]:
        """Do `work(node)` on every node at once; the first error ends the round."""
        results = await on_all(self.nodes, work)
        for node, error in errors_of(results).items():
            self._note_lost(node.host, error)
            raise StageFailed(failure_on(node.host, self.state.stage, error))
        return values_of(results)

    def _note_lost(self, host: str, error: FlagPerfError) -> None:
        if isinstance(error, TransportError):
            self.state.lost.add(host)

    async def _prepare_host(self, node: Node) -> None:
        session = self.session
        transport = session.transports[node.host]
        if await deploy_tree(transport, session.tree, session.paths.tree):
            LOGGER.info(f"{node.host}: deployed to {session.paths.tree}")
        await checked(transport, ["mkdir", "-p", session.paths.node(node)], timeout=60)
        if session.plan.run.clear_caches:
            await checked(transport, ["sh", "-c", DROP_CACHES], timeout=120)

    async def _provide_image(self) -> None:
        session, run = self.session, self.session.plan.run
        if session.images is None:
            return
        image = plan_image(session.plan, self.case)
        self.state.tag = image.tag
        hosts = {host: session.transports[host] for host in self.case.hosts}
        sites = {host: self._build_site(host, image.tag) for host in hosts}
        log_dir = session.log_dir / self.case.settings.name
        stage = ImageStage(session.images, hosts, sites, image, run.pip, run.image_distribution, log_dir)
        try:
            self.state.images.update(await stage.run())
        except FlagPerfError as error:
            self._note_lost(error.where, error)
            raise StageFailed(failure_on(error.where, Stage.IMAGE, error)) from error

    def _build_site(self, host: str, tag: str) -> BuildSite:
        session = self.session
        return BuildSite(
            tree=session.paths.tree,
            work=session.paths.work,
            run_uid=session.run.uid,
            name=build_name(session.run.uid, host, tag),
            local=host == LOCALHOST,
        )

    async def _interface(self, node: Node) -> str:
        if len(self.nodes) == 1:
            return ""
        return await interface_to(self.session.transports[node.host], peer_of(self.case, node.rank))

    async def _start(self, node: Node, interface: str) -> None:
        session = self.session
        launch = Launch(
            session.plan, session.run, session.paths, session.runtime, self.framework, self.state.tag
        )
        transport = session.transports[node.host]
        master = "127.0.0.1" if len(self.nodes) == 1 else self.case.hosts[0]
        monitor, task = launch.monitor(node), launch.task(node, master, interface)
        # both to their end, whatever becomes of one: a unit that starts after the clean-up would stay
        starts = [session.runtime.start(transport, unit) for unit in (task, monitor)]
        for result in await asyncio.gather(*starts, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        self._record("started", host=node.host, task=task.name, monitor=monitor.name)
        session.progress.stage(node, Stage.TRAIN.value)

    def _unit(self, node: Node, role: str) -> str:
        return unit_name(self.session.run, node, role)

    async def _watch(self) -> Outcome:
        session, first, training = self.session, self.nodes[0], self.state.training
        follower = asyncio.create_task(
            follow_events(
                session.transports[first.host], session.paths.node(first), training, session.progress
            )
        )
        watch = Watch(
            session.runtime,
            session.transports,
            {node.rank: self._unit(node, "task") for node in self.nodes},
            session.plan.cluster.host_lost_after_s,
            lambda: training.progressed_at,
        )
        try:
            return await watch.run(self.nodes, self.case.deadline_s)
        finally:
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)

    async def _stop_units(self) -> None:
        endings = self.state.outcome.endings if self.state.outcome else {}

        async def stop(node: Node) -> None:
            transport = self.session.transports[node.host]
            names = [self._unit(node, "monitor")]
            if not isinstance(endings.get(node.rank), Ended):
                names.append(self._unit(node, "task"))
            stops = [self.session.runtime.stop(transport, name, STOP_GRACE_S) for name in names]
            # all of them to their end: what is still stopping writes to the logs that are collected next
            for result in await asyncio.gather(*stops, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result

        for node, error in errors_of(await on_all(self.nodes, stop)).items():
            self._note_lost(node.host, error)
            LOGGER.warning(f"{node.host}: its units could not be stopped: {error.message}")

    async def _collect(self) -> None:
        async def collect(node: Node) -> None:
            timeout = LOST_COLLECT_TIMEOUT_S if node.host in self.state.lost else COLLECT_TIMEOUT_S
            transport, source = self.session.transports[node.host], self.session.paths.node(node)
            if not (await transport.run(["test", "-d", source], timeout=timeout)).ok:
                return  # the round ended before this node had a folder
            await collect_folder(transport, source, self.session.log_dir / node.folder, timeout)

        for node, error in errors_of(await on_all(self.nodes, collect)).items():
            self.state.not_collected.add(node.rank)
            self.state.notes.append(str(error))
            LOGGER.warning(f"{node.host}: {error}")
            # Global rank 0 lives on the first node: without its log there is no result.
            if node.rank == 0 and self.state.outcome and self.state.outcome.all_ended_well:
                self.state.failure = failure_on(node.host, Stage.COLLECT, error)

    async def _keep_output(self) -> None:
        """What tasks printed that failed before they opened their log: as long as their units are there."""
        endings = self.state.outcome.endings if self.state.outcome else {}

        async def keep(node: Node) -> None:
            ending, folder = endings.get(node.rank), self.session.log_dir / node.folder
            failed = isinstance(ending, Ended) and ending.code != 0
            if (
                not failed
                or node.rank in self.state.not_collected
                or _has_text(start_log_of(self.framework.name, folder))
            ):
                return
            transport, name = self.session.transports[node.host], self._unit(node, "task")
            text = await self.session.runtime.last_output(transport, name)
            if text:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / TASK_OUTPUT).write_text(f"{text}\n", encoding="utf-8")

        for node, error in errors_of(await on_all(self.nodes, keep)).items():
            LOGGER.warning(f"{node.host}: what its task printed is not known: {error.message}")


def _has_text(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
