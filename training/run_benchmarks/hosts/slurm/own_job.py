"""The nodes of the job that run.py itself is in: under `salloc`, or in a batch script."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from run_benchmarks.hosts.answers import answer_to
from run_benchmarks.hosts.base import Allocation, AllocationError, Host
from run_benchmarks.hosts.granted import GrantedJob
from run_benchmarks.hosts.slurm.allocator import NodeOpener, hosts_of
from run_benchmarks.hosts.slurm.jobs import Slurm
from run_benchmarks.hosts.slurm.tenure import JobTenure
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.stages.fan_out import on_all


class OwnJob:
    """Hosts that are there as long as the job is, which whoever began it ends."""

    keeps = True
    standing: tuple[Host, ...] = ()

    def __init__(self, settings: SlurmSettings, opener: NodeOpener, slurm: Slurm | None = None) -> None:
        self._settings, self._open, self._slurm = settings, opener, slurm or Slurm()
        self._hosts: dict[str, Host] = {}

    def planned(self, case: CasePlan) -> tuple[Host, ...]:
        """None: how the nodes are reached is asked when a round begins."""
        return ()

    @asynccontextmanager
    async def revisit(self, names: Sequence[str]) -> AsyncIterator[Sequence[Host]]:
        """None: run.py itself ends with the job."""
        yield ()

    def avoid(self, host: str) -> None:
        """There are no other hosts."""

    @asynccontextmanager
    async def acquire(self, case: CasePlan, earlier: GrantedJob | None = None) -> AsyncIterator[Allocation]:
        """The nodes that the plan has given to the case."""
        job = await answer_to(lambda: self._slurm.look(os.environ["SLURM_JOB_ID"]))
        if job is None:
            raise AllocationError("Slurm does not know the job that run.py is in", where="slurm")
        if not self._hosts:
            self._hosts = {host.name: host for host in await hosts_of(self._slurm, job, self._open)}
        hosts = tuple(self._hosts[name] for name in case.hosts)
        tenure = JobTenure(self._slurm, job, self._settings.save_before, earlier)
        try:
            yield Allocation(hosts, tenure)
        finally:
            await tenure.close()

    async def close(self) -> None:
        """Let go of the nodes, which stay the job's."""
        await on_all([*self._hosts.values()], lambda host: host.transport.close())
