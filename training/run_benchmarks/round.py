"""One round of one case: acquire hosts, deploy, image, launch, wait, collect, clean up, judge. Failure is a result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from run_benchmarks.attempts import attempts_in, bring_late_logs, is_another_attempt
from run_benchmarks.failures import StageFailed, TakenAway, failure_on, interrupted
from run_benchmarks.frameworks import open_framework
from run_benchmarks.health import report_health, unhealthy
from run_benchmarks.hosts.base import Host, NotGivenBackError, NotTakenUpError
from run_benchmarks.hosts.granted import Tenure
from run_benchmarks.judging import judge_round
from run_benchmarks.leaving import forget_attempt, leave, removal_script
from run_benchmarks.names import Node, nodes_of
from run_benchmarks.origin import origin_of
from run_benchmarks.plan.host_ranges import alike
from run_benchmarks.plan.idle_reading import idle_reading_s
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.results.round_result import Observation, RoundResult, bounded
from run_benchmarks.resumption import RoundSoFar
from run_benchmarks.round_clocks import read_begin
from run_benchmarks.round_end import RoundEnd
from run_benchmarks.round_hosts import granted, revisited, unless_taken_away
from run_benchmarks.round_image import provide_image
from run_benchmarks.round_meters import start_meters
from run_benchmarks.round_state import RoundState
from run_benchmarks.round_tree import bring_to_hosts
from run_benchmarks.round_units import RoundUnits
from run_benchmarks.round_uptimes import find_begin, note_uptimes
from run_benchmarks.round_verdicts import note_verdict
from run_benchmarks.round_watch import ended_unwatched, watch_round
from run_benchmarks.session import Interrupted, Session, in_time, now, unless_broken_off, unless_interrupted
from run_benchmarks.stages.caches import DROP_CACHES
from run_benchmarks.stages.checkpoints import make_checkpoint_folders
from run_benchmarks.stages.deploy import deploy_tree
from run_benchmarks.stages.fan_out import errors_of, on_all, values_of
from run_benchmarks.stages.preflight import preflight
from run_benchmarks.stages.run_folder import make_node_folder
from run_benchmarks.stages.watch_first import out_of_reach
from run_benchmarks.stranded import saved, stranded
from run_benchmarks.transports.backoff import TRANSFER_PAUSES_S, is_passing, with_backoff
from run_benchmarks.transports.base import Transport, checked
from run_benchmarks.unforeseen import log_traceback
from utils.records import Stage

T = TypeVar("T")

# An allocator that cannot give hosts back must not hold up the rounds that come after.
GIVE_BACK_TIMEOUT_S = 120.0


class Round:
    """Runs one round and leaves nothing behind on any path out.

    Args:
        begun: how far the round came whose controller has died.
    """

    def __init__(
        self, session: Session, case: CasePlan, number: int, begun: RoundSoFar | None = None
    ) -> None:
        self.session = session
        started = datetime.now().astimezone().isoformat(timespec="seconds")
        self.state = RoundState(case, number, started)
        self.hosts: tuple[Host, ...] = ()  # by node rank
        self.tenure: Tenure | None = None
        self._keep: Callable[[], str] | None = None
        self._is_saved = True
        self._begun = begun
        self._is_taken_away = False
        self._is_anew = begun is not None and begun.seen is None
        if begun and begun.seen:
            self.state = RoundState.taken_up(case, begun)
        if begun:
            self.state.notes.append(f"the round was {begun}")
        self.state.attempts = attempts_in(self._folder)

    async def run(self) -> RoundResult:
        """The round's result, whatever goes wrong: only NotTakenUpError is raised, and later rounds have their turn.

        When the session is interrupted it is INTERRUPTED, and all is cleaned up.
        """
        state, session = self.state, self.session
        self._record("round_resumed" if self.state.is_taken_up else "round_started")
        # left last: hosts are given back when nothing of the round is on them any more
        held = AsyncExitStack()
        try:
            if self.state.is_taken_up:
                await self._acquire(held)
            if session.interrupt.is_set() and state.is_taken_up and not (state.outcome or state.failure):
                state.outcome = await ended_unwatched(session, state, self.hosts)
            if not (state.outcome or state.failure):
                await unless_interrupted(session.interrupt, self._train(held))
        except StageFailed as stopped:
            self._is_taken_away = isinstance(stopped, TakenAway) and stopped.is_over
            state.stop(stopped.failure, is_taken_away=self._is_taken_away)
        except NotTakenUpError:
            raise
        except Interrupted:
            state.failure = interrupted(state.stage, session.interrupt.by)
        except Exception as error:
            state.note_error(error)
        await self._finish(held)
        if not self._is_saved:
            return stranded(session, self._seen)
        result = await judge_round(session, state.case, self._seen, self._folder)
        note_verdict(session, result)
        return result

    @property
    def _folder(self) -> Path:
        return self.session.log_dir / self.state.case.settings.name / f"round{self.state.number}"

    @property
    def _seen(self) -> Observation:
        session, state = self.session, self.state
        seen = state.observed(session.plan.continue_from, origin_of(session, state))
        return bounded(session.plan.secrets.hide_in(seen))

    async def _train(self, held: AsyncExitStack) -> None:
        if not self.state.is_taken_up:
            with self._stage(Stage.ACQUIRE):
                self.state.framework = open_framework(self.state.case.settings.framework)
                await self._acquire(held)
        await unless_taken_away(self.tenure, lambda: self.state.stage, self._work())

    async def _work(self) -> None:
        if self.state.is_taken_up:
            start_meters(self.session, self.state)
            await read_begin(self.state, self.hosts)
        else:
            await self._launch()
        with self._stage(Stage.TRAIN):
            outcome = await watch_round(self.session, self.state, self.hosts, self.tenure)
            self.state.outcome = outcome
            self.state.lost |= {self.hosts[rank].name for rank in out_of_reach(outcome)}

    async def _launch(self) -> None:
        await self._check_new_hosts()
        with self._stage(Stage.DEPLOY):
            # on all, before anything is made: hosts that share a work folder would forget what is another's
            await self._everywhere(self._forget_earlier)
            await bring_to_hosts(self.session, self.state, self.hosts)
            await self._everywhere(self._prepare_host)
        with self._stage(Stage.IMAGE):
            await provide_image(self.session, self.state, self.hosts)
        units = RoundUnits(self.session, self.state, self.hosts)
        start_meters(self.session, self.state)
        idle_s = idle_reading_s(self.session.plan.run, self.state.case.vendor)
        if idle_s:
            with self._stage(Stage.IDLE):
                await self._everywhere(units.start_monitor)
                await self.session.pause(idle_s)
        with self._stage(Stage.LAUNCH):
            interfaces = await self._everywhere(units.interface)
            await read_begin(self.state, self.hosts)
            await note_uptimes(self.state, self.hosts)
            start = units.start_task if idle_s else units.start_both
            await self._everywhere(lambda node: start(node, interfaces[node]))

    async def _finish(self, held: AsyncExitStack) -> None:
        """Stop what still runs, bring the logs home, remove the units, give the hosts back: on every path out."""
        await self._in_any_case(self._note_tenure())  # as long as the scheduler knows the job
        with self._stage(Stage.COLLECT):
            if self._is_taken_away:
                with self._noted():
                    visits = revisited(self.session, self.state, self.hosts, held)
                    self.hosts = await unless_broken_off(visits)
            for step in RoundEnd(self.session, self.state, self.hosts).steps():
                await self._in_any_case(step())
        self.state.note_time()
        self._is_saved = saved(self.session, self.state, self._seen, self._keep)
        with self._stage(Stage.CLEAN_UP):
            if self._is_saved:
                await self._in_any_case(self._leave())
            await self._in_any_case(self._give_back(held))
            await self._in_any_case(self._note_tenure())
        with self._noted():
            self.session.display.round_ended()

    async def _in_any_case(self, work: Coroutine[Any, Any, None]) -> None:
        """Do `work`; whatever goes wrong in it, what comes after it is done too."""
        with self._noted():
            await unless_broken_off(work)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.state.note_error(error)

    @contextmanager
    def _stage(self, stage: Stage) -> Iterator[None]:
        self.state.stage = stage
        self.state.note_time()
        # where a controller that takes the round up can enter it
        entrance = {"seen": self._seen.as_dict()} if stage in (Stage.TRAIN, Stage.COLLECT) else {}
        self._record("stage", stage=stage.value, **entrance)
        with self._noted():
            self.session.display.stage(None, stage.value)
        begin = time.monotonic()
        try:
            yield
        finally:
            before = self.state.times.get(stage.value, 0.0)  # of a controller that died in it
            self.state.times[stage.value] = round(before + time.monotonic() - begin, 3)

    def _record(self, event: str, **facts: object) -> None:
        state = self.state
        self.session.journal.write(event, case=state.case.settings.name, round=state.number, **facts)

    async def _everywhere(self, work: Callable[[Node], Awaitable[T]]) -> dict[Node, T]:
        """Do `work(node)` on every node at once; the first error ends the round, and goes with all there are."""
        results = await on_all(self.state.nodes, work)
        errors = {node.host: error for node, error in errors_of(results).items()}
        for host, error in errors.items():
            self.state.note_lost(host, error)
        for hosts, why in (
            alike({host: error.message for host, error in errors.items()}) if len(errors) > 1 else ()
        ):
            self.state.warn(f"at the stage {self.state.stage.value} it failed on {hosts}: {why}")
        for host, error in errors.items():
            raise StageFailed(failure_on(host, self.state.stage, error))
        return values_of(results)

    def _transport(self, node: Node) -> Transport:
        return self.hosts[node.rank].transport

    async def _acquire(self, held: AsyncExitStack) -> None:
        state, case = self.state, self.state.case
        allocation = await granted(self.session, state, held)
        self.hosts, self.tenure, self._keep = allocation.hosts, allocation.tenure, allocation.keep
        state.case = replace(case, hosts=(names := tuple(host.name for host in self.hosts)))
        state.nodes = nodes_of(state.case, state.number)
        self.session.unclean.update(names)
        if state.is_taken_up and self._begun:
            await find_begin(state, self.hosts, self._begun)
        else:
            state.begin = now()  # waiting in a queue is not the round's time
        await self._note_tenure()
        if self.tenure:
            self.tenure.at_end(removal_script(self.session))
        self._record("acquired", hosts=names, **({"job": state.allocation.job} if state.allocation else {}))
        self.session.display.round_started(state.nodes, state.training)
        if allocation.end:
            raise TakenAway(Stage.ACQUIRE, allocation.end)

    async def _note_tenure(self) -> None:
        """What the scheduler says of the job that the hosts are of: when they are granted, and at its end."""
        if self.tenure:
            self.state.allocation = await self.tenure.record()

    async def _check_new_hosts(self) -> None:
        """The preflight of those hosts that were not there when the run began."""
        session = self.session
        new = [host for host in self.hosts if host not in session.allocator.standing]
        if not new:
            return
        with self._stage(Stage.PREFLIGHT):
            checks = await preflight(session.plan, session.runtime, new, [(self.state.case, self.hosts)])
            session.checks.update(checks)
            report_health(checks)
            failure = unhealthy(checks)
            if failure:
                raise StageFailed(failure)

    async def _forget_earlier(self, node: Node) -> None:
        if self._is_anew or is_another_attempt(self._folder):
            await bring_late_logs(self.session, self._transport(node), node)
            await forget_attempt(self.session, self.hosts[node.rank], node)

    async def _prepare_host(self, node: Node) -> None:
        session, transport = self.session, self._transport(node)
        deploy = partial(deploy_tree, transport, session.tree, session.paths)
        self.state.notes += await with_backoff(deploy, TRANSFER_PAUSES_S, is_passing)
        await make_node_folder(transport, session.paths, node)
        await make_checkpoint_folders(transport, session.plan, session.run, node)
        if session.plan.run.clear_caches:
            await checked(transport, ["sh", "-c", DROP_CACHES], timeout=120)

    async def _leave(self) -> None:
        self.state.notes += await leave(self.session, self.hosts)

    async def _give_back(self, held: AsyncExitStack) -> None:
        try:
            await in_time(held.aclose(), GIVE_BACK_TIMEOUT_S)
        except Exception as error:  # what the round measured stands all the same
            if not isinstance(error, asyncio.TimeoutError | NotGivenBackError):
                log_traceback(Stage.CLEAN_UP, error)
            self.state.warn(f"the hosts could not be given back: {error}")
