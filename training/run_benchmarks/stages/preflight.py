"""Preflight: all hosts at once, every check, one table; nothing is launched where one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from run_benchmarks.hosts.base import Host
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages import checks
from run_benchmarks.stages.build_secrets import build_secrets
from run_benchmarks.stages.caches import caches
from run_benchmarks.stages.checkpoints import checkpoints
from run_benchmarks.stages.checks import Check, Checker, HostUse, Place, Status, outcome
from run_benchmarks.stages.data import data
from run_benchmarks.stages.devices import devices
from run_benchmarks.stages.precision import precision

REACHABLE = "reachable"  # the name of that check
REACHABLE_TIMEOUT_S = 30.0
CHECKS: tuple[Checker, ...] = (
    checks.engine,
    checks.deploy_path,
    checks.free_disk,
    data,
    devices,
    precision,
    checks.clock,
    checks.master_port,
    checks.leftovers,
    checks.software,
    checks.peers,
    caches,
    checkpoints,
    build_secrets,
)


async def preflight(
    plan: Plan, runtime: Runtime, hosts: Sequence[Host], casts: Sequence[tuple[CasePlan, Sequence[Host]]]
) -> dict[str, list[Check]]:
    """Check `hosts` for the cases that run on them.

    Args:
        casts: the cases, each with its hosts by node rank.

    Returns:
        Host -> its checks. A host that is not reached has that one check, as an error.
    """
    of_hosts = await asyncio.gather(*(_check_host(plan, runtime, _use(host, casts)) for host in hosts))
    return {host.name: checks for host, checks in zip(hosts, of_hosts, strict=True)}


def _use(host: Host, casts: Sequence[tuple[CasePlan, Sequence[Host]]]) -> HostUse:
    places = tuple(
        Place(case, hosts.index(host), tuple(each.address for each in hosts))
        for case, hosts in casts
        if host in hosts
    )
    return HostUse(host.transport, places)


async def _check_host(plan: Plan, runtime: Runtime, use: HostUse) -> list[Check]:
    reached = await outcome(reachable, plan, runtime, use)
    if reached.status is not Status.OK:
        return [reached]
    return [reached, *await asyncio.gather(*(outcome(checker, plan, runtime, use) for checker in CHECKS))]


async def reachable(plan: Plan, runtime: Runtime, use: HostUse) -> str:
    """The host runs a command."""
    return (await use.transport.run(["uname", "-sr"], timeout=REACHABLE_TIMEOUT_S)).stdout.strip()
