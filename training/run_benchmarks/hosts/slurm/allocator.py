"""Hosts that Slurm grants: a job holds them from the queue to the moment when they are given back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress

from run_benchmarks.hosts.answers import answer_to
from run_benchmarks.hosts.base import (
    Allocation,
    AllocationError,
    Host,
    NoAnswerError,
    NotGivenBackError,
    warn_of_stuck_jobs,
)
from run_benchmarks.hosts.granted import AllocationEnd, GrantedJob
from run_benchmarks.hosts.slurm.ends import ended, node_lost
from run_benchmarks.hosts.slurm.holder import beat_of, beat_s, job_name, sbatch_argv, script
from run_benchmarks.hosts.slurm.jobs import NoSuchNodesError, Slurm
from run_benchmarks.hosts.slurm.queue import looked_at, wait_in_queue
from run_benchmarks.hosts.slurm.record import PENDING, RUNNING, Job, SlurmError
from run_benchmarks.hosts.slurm.tenure import JobTenure
from run_benchmarks.hosts.slurm.visit import visited
from run_benchmarks.plan.host_ranges import alike
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.run_log import LOGGER
from run_benchmarks.stages.fan_out import errors_of, on_all, values_of
from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError
from utils.numbers import counted

# job ID, node -> the way to the node
NodeOpener = Callable[[str, str], Transport]


class SlurmHosts:
    """Hosts of a job for each round or, where that is kept, of one job for all rounds that it is large enough for.

    Args:
        run: what its jobs are called after; those of a run that is taken up are found again by it.
        most: the nodes of the largest case, which a job that is kept has from the beginning.
    """

    keeps = True
    standing: tuple[Host, ...] = ()

    def __init__(
        self, settings: SlurmSettings, run: str, most: int, opener: NodeOpener, slurm: Slurm | None = None
    ) -> None:
        self._settings, self._most, self._open = settings, most, opener
        self._run, self._name, self._slurm = run, job_name(run), slurm or Slurm()
        self._job: Job | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._hosts: tuple[Host, ...] = ()
        self._avoided: list[str] = []  # the longest ago first
        self._stuck: dict[str, str] = {}  # jobs whose end was waited for in vain -> their nodes

    def planned(self, case: CasePlan) -> tuple[Host, ...]:
        """None: Slurm names them."""
        return ()

    def avoid(self, host: str) -> None:
        """Ask for no job on this node any more, where Slurm has others."""
        self._avoided = [*(each for each in self._avoided if each != host), host]

    @asynccontextmanager
    async def acquire(self, case: CasePlan, earlier: GrantedJob | None = None) -> AsyncIterator[Allocation]:
        """The nodes of a job: those of `case.hosts`, where the round had some before it was taken up."""
        try:
            job = await self._job_for(case)
        except BaseException as error:
            if case.hosts and isinstance(error, NoAnswerError | asyncio.CancelledError):
                await self._let_go()  # the round may go on in its job
                raise
            with suppress(FlagPerfError), warn_of_stuck_jobs():  # the first error is the one to be raised
                await self._give_back()
            raise
        by_name = {host.name: host for host in self._hosts}
        hosts = [by_name[name] for name in case.hosts or by_name]
        tenure = JobTenure(self._slurm, job, self._settings.save_before, earlier)
        try:
            yield Allocation(tuple(hosts[: case.settings.nnodes]), tenure)
        finally:
            try:
                if not self._settings.hold:
                    await self._give_back()
            finally:
                await tenure.close()

    @asynccontextmanager
    async def revisit(self, names: Sequence[str]) -> AsyncIterator[Sequence[Host]]:
        """Those nodes that Slurm grants soon, each in a small job."""
        async with visited(self._slurm, self._settings, self._run, names, self._open) as nodes:
            for text, why in alike({node: error.message for node, error in errors_of(nodes).items()}):
                LOGGER.warning(f"{text}: not to be had once more, to be cleaned up: {why}")
            yield tuple(values_of(nodes).values())

    async def close(self) -> None:
        """Give the nodes back, and wait until Slurm has it so. What an earlier controller of the run has left goes too.

        Raises:
            NotGivenBackError: a job is still there after a while.
        """
        self._stuck.clear()
        await self._give_back()

    async def _give_back(self) -> None:
        """As `close`, but it waits for no job twice: a node that never answers would cost every round that time."""
        await self._let_go()
        try:
            await answer_to(lambda: self._slurm.end(self._name, but=self._stuck))
        except NotGivenBackError as error:
            self._stuck |= error.stuck
            raise

    async def _let_go(self) -> None:
        """Hold nothing of the job any more, which stays."""
        self._job = None
        if self._keeping:
            self._keeping.cancel()
        await on_all(self._hosts, lambda host: host.transport.close())
        self._hosts = ()

    async def _job_for(self, case: CasePlan) -> Job:
        """A job that runs, on nodes for the case."""
        nodes = self._most if self._settings.hold else case.settings.nnodes
        held = self._job if not case.hosts else None
        job = await looked_at(self._slurm, held.id) if held else await self._left()
        if job and not self._serves(job, case, nodes):
            if case.hosts:
                raise AllocationError.by(await self._end_of(job, case))
            with warn_of_stuck_jobs():
                await self._give_back()
            job = None
        if case.hosts and job is None:
            message = "Slurm knows no job of this run any more: its nodes are gone"
            raise AllocationError(message, where="slurm", remedy="begin the run anew")
        if self._job and job:
            return job
        if job and case.hosts and job.state != RUNNING:
            message = f"Slurm's job {job.id} has its nodes and does not run: it is {job.state}"
            remedy = f"wait until it runs (one that is suspended: `scontrol resume {job.id}`)"
            raise NoAnswerError(message, where="slurm", remedy=remedy)
        if not (job and case.hosts):  # that of a round which is taken up was seen to run
            job = await wait_in_queue(self._slurm, job.id if job else await self._submit(nodes, case))
        return await self._hold(job, case.hosts)

    async def _left(self) -> Job | None:
        """The newest job of this run that Slurm knows, which a controller that has died asked for."""
        left = await answer_to(lambda: self._slurm.named(self._name))
        return await answer_to(lambda: self._newest(left))

    async def _newest(self, jobs: Iterable[str]) -> Job | None:
        """The newest of these jobs that is this run's, by its own record: a site's line may look like a job's."""
        for job_id in sorted(jobs, key=int, reverse=True):
            job = await self._slurm.look(job_id)
            if job and job.fields.get("JobName") == self._name:
                return job
        return None

    async def _end_of(self, job: Job, case: CasePlan) -> AllocationEnd:
        """Why a round that is taken up cannot go on in its job."""
        lost = [node for node in _needed(case) if node not in job.nodes]
        if job.has_begun and lost:
            return node_lost(job, lost[0])
        return ended(job.id, job, await self._slurm.accounting(job.id))

    def _serves(self, job: Job, case: CasePlan, nodes: int) -> bool:
        """Whether the round can be run, or go on, in this job."""
        if case.hosts:
            return job.has_begun and set(_needed(case)) <= set(job.nodes)
        is_there = job.state in (PENDING, RUNNING) and job.fields.get("NumNodes", "").split("-")[0] == str(
            nodes
        )
        tenure = JobTenure(self._slurm, job, self._settings.save_before)
        return is_there and not set(self._avoided) & set(job.nodes) and not tenure.is_near_end(job, share=2)

    async def _submit(self, nodes: int, case: CasePlan) -> str:
        """Ask for a job; its ID."""
        while self._avoided and not await self._has_others(nodes):
            node = self._avoided.pop(0)
            LOGGER.warning(
                f"Slurm has too few nodes for the job without {node}, which is not avoided any more"
            )
        argv = sbatch_argv(self._settings, self._name, nodes, self._avoided, is_search=bool(case.roles))
        job = await self._sent(argv)
        stuck = (
            f"; not given back by earlier rounds: {'; '.join(self._stuck.values())}" if self._stuck else ""
        )
        LOGGER.info(f"Slurm's job {job} asks for {counted(nodes, 'node')}{stuck}")
        return job

    async def _sent(self, argv: Sequence[str]) -> str:
        """The ID of the job that is asked for. Where sbatch has no answer, the job may have come to Slurm all the same.

        Where this is cancelled Slurm's answer is waited for: the job could not be cancelled else.
        """
        is_sent = False

        async def send() -> str:
            nonlocal is_sent
            there = (await self._slurm.left_of(self._name)).keys() - self._stuck.keys() if is_sent else ()
            if job := await self._newest(there):
                return job.id
            is_sent = True
            asking = asyncio.ensure_future(self._slurm.submit(argv, script(self._settings)))
            try:
                return await asyncio.shield(asking)
            except asyncio.CancelledError:
                await asyncio.gather(asking, return_exceptions=True)
                raise

        return await answer_to(send)

    async def _has_others(self, nodes: int) -> bool:
        """Whether there are so many nodes, taken or not, without those that are to be avoided."""
        argv = sbatch_argv(self._settings, self._name, nodes, self._avoided)
        try:
            await self._slurm.test((*argv, "--test-only"), script(self._settings))
        except NoSuchNodesError:
            return False
        except SlurmError:  # whatever else speaks against the job is said when it is asked for
            return True
        return True

    async def _hold(self, job: Job, earlier: Sequence[str]) -> Job:
        """Take over a job that runs, and keep it. Of `earlier` nodes those that it has lost are out of reach."""
        self._job = job
        self._keeping = asyncio.create_task(self._keep(job.id))
        self._hosts = await hosts_of(self._slurm, job, self._open, earlier)
        LOGGER.info(f"Slurm's job {job.id} runs on {job.fields.get('NodeList', '')}")
        return job

    async def _keep(self, job: str) -> None:
        """Say all the while that the run has a controller."""
        while True:
            with suppress(SlurmError):  # one that does not answer says nothing to the job either
                await self._slurm.comment(job, beat_of(self._name, time.time()))
            await asyncio.sleep(beat_s(self._settings))


def _needed(case: CasePlan) -> Sequence[str]:
    """The nodes without which a round cannot go on: a search goes on without its others, where they are lost."""
    return case.hosts[:1] if case.roles else case.hosts


async def hosts_of(
    slurm: Slurm, job: Job, opener: NodeOpener, earlier: Sequence[str] = ()
) -> tuple[Host, ...]:
    """The nodes of a job that runs, in Slurm's order, and behind them those of `earlier` that it has lost.

    Of these Slurm is asked nothing: it may know one no more, and then says nothing of the others either.
    """
    addresses = await answer_to(lambda: slurm.addresses(job.nodes))
    nodes = dict.fromkeys((*job.nodes, *earlier))
    return tuple(Host(node, addresses.get(node, node), opener(job.id, node)) for node in nodes)
