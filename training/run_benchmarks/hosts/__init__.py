"""Hosts: where those of a round come from. `open_allocator` is the way in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from run_benchmarks.hosts.base import Allocator, NotGivenBackError
from run_benchmarks.hosts.fixed import FixedHosts, Opener
from run_benchmarks.plan.kubernetes import KubernetesSettings
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.transports import open_transport
from utils.errors import FlagPerfError


def open_allocator(plan: Plan, run: str, opener: Opener | None = None) -> Allocator:
    """The allocator that the plan's settings ask for.

    Args:
        run: what is asked of a scheduler is called after it.
        opener: makes the transport to a host that the plan knows; by default a real one.
    """
    cluster = plan.cluster
    if cluster.slurm and not opener:
        return _on_slurm(plan, cluster.slurm, run)
    if cluster.kubernetes and not opener:
        return _on_kubernetes(plan, cluster.kubernetes, run)
    return FixedHosts(cluster, opener or (lambda host: open_transport(host, cluster)))


@asynccontextmanager
async def standing_hosts(plan: Plan, run: str) -> AsyncIterator[tuple[Plan, Allocator]]:
    """All hosts of the plan at once, for who looks at them: those of a scheduler are asked for.

    Args:
        run: as of `open_allocator`.

    Returns:
        The plan with these hosts in it, and what has them.

    Raises:
        FlagPerfError: there will be none.
        NotGivenBackError: on leaving.
    """
    allocator = open_allocator(plan, run)
    try:
        if not plan.cluster.scheduler:
            yield plan, allocator
            return
        await check_hosts(plan)
        with suppress(NotGivenBackError):  # `close` waits once more, and raises it then
            async with allocator.acquire(_largest(plan)) as allocation:
                hosts = {host.name: host for host in allocation.hosts}
                cases = tuple(
                    replace(case, hosts=tuple(hosts)[: case.settings.nnodes]) for case in plan.cases
                )
                plan = replace(plan, cases=cases, cluster=replace(plan.cluster, hosts=tuple(hosts)))
                addresses = {name: host.address for name, host in hosts.items()}
                yield plan, FixedHosts(plan.cluster, lambda name: hosts[name].transport, addresses)
    finally:
        # a job that the settings name is of the run that trains there, or is about to
        if not (plan.cluster.kubernetes and plan.cluster.kubernetes.job):
            await allocator.close()


def _largest(plan: Plan) -> CasePlan:
    if not plan.cases:
        remedy = "have a valid case in CASES, or list the nodes in HOSTS, to be reached by ssh"
        raise FlagPerfError(
            f"how many nodes to ask {plan.cluster.scheduler} for is said by cases alone", remedy=remedy
        )
    return max(plan.cases, key=lambda case: case.settings.nnodes)


async def check_hosts(plan: Plan) -> None:
    """See before anything is launched that the hosts can be asked for.

    Raises:
        FlagPerfError: they cannot.
    """
    if plan.cluster.slurm:
        from run_benchmarks.hosts.slurm.check import check_slurm

        await check_slurm(plan, plan.cluster.slurm)
    if plan.cluster.kubernetes:
        from run_benchmarks.hosts.kubernetes.check import check_kubernetes

        await check_kubernetes(plan, plan.cluster.kubernetes)


def _on_slurm(plan: Plan, settings: SlurmSettings, run: str) -> Allocator:
    # imported late: most runs have nothing to do with Slurm
    from run_benchmarks.hosts.slurm.allocator import SlurmHosts
    from run_benchmarks.hosts.slurm.own_job import OwnJob
    from run_benchmarks.transports.srun import SrunTransport

    if settings.inside:
        return OwnJob(settings, SrunTransport)
    most = max((case.settings.nnodes for case in plan.cases), default=1)
    return SlurmHosts(settings, run, most, SrunTransport)


def _on_kubernetes(plan: Plan, settings: KubernetesSettings, run: str) -> Allocator:
    from run_benchmarks.hosts.kubernetes.allocator import KubernetesHosts
    from run_benchmarks.hosts.kubernetes.case import workers_of

    return KubernetesHosts(settings, run, lambda case, name: workers_of(plan, settings, case, name, run))
