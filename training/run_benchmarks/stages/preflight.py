"""Preflight: all hosts at once, every check, one table; nothing is launched where one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from run_benchmarks.hosts.base import Allocator, Host
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages import checks
from run_benchmarks.stages.build_secrets import build_secrets
from run_benchmarks.stages.caches import caches
from run_benchmarks.stages.checkpoints import checkpoints
from run_benchmarks.stages.checks import Check, Checker, HostUse, Place, Status, Use, outcome
from run_benchmarks.stages.data import data
from run_benchmarks.stages.devices import devices
from run_benchmarks.stages.fan_out import MOST_AT_ONCE
from run_benchmarks.stages.master_port import master_port
from run_benchmarks.stages.power_meter import power_meter
from run_benchmarks.stages.precision import precision
from run_benchmarks.stages.readings import Readings
from run_benchmarks.stages.same_machine import ASK, MACHINE, machine_in

REACHABLE = "reachable"  # the name of that check
REACHABLE_TIMEOUT_S = 30.0
CHECKS: tuple[Checker[HostUse], ...] = (
    checks.engine,
    checks.deploy_path,
    checks.free_disk,
    data,
    devices,
    precision,
    checks.clock,
    master_port,
    checks.leftovers,
    checks.software,
    checks.peers,
    caches,
    checkpoints,
    build_secrets,
)
# What it measures is its own way to the host and back.
ALONE = (checks.clock,)


async def preflight(
    plan: Plan,
    runtime: Runtime,
    hosts: Sequence[Host],
    casts: Sequence[tuple[CasePlan, Sequence[Host]]],
    readings: Readings | None = None,
) -> dict[str, list[Check]]:
    """Check `hosts` for the cases that run on them.

    Args:
        casts: the cases, each with its hosts by node rank.
        readings: those of other hosts that are checked at the same time.

    Returns:
        Host -> its checks. A host that is not reached has that one check, as an error.
    """
    places, turns = places_of(hosts, casts), asyncio.Semaphore(MOST_AT_ONCE)
    readings = readings or Readings()
    uses = [HostUse(host.transport, places[host.name], readings=readings) for host in hosts]
    of_hosts = await asyncio.gather(*(_check_host(plan, runtime, use, turns) for use in uses))
    return {host.name: checks for host, checks in zip(hosts, of_hosts, strict=True)}


@dataclass(frozen=True)
class Casting:
    """Standing hosts, with the cases in which they have a place and each case's hosts by node rank."""

    hosts: Sequence[Host]
    casts: Sequence[tuple[CasePlan, Sequence[Host]]]


def castings(plan: Plan, allocator: Allocator) -> tuple[Casting, Casting]:
    """The hosts that the cases are planned for, and the spares, each as if it had the first place.

    There is one thing more to be checked there: the master's port.
    """
    casts = [(case, allocator.planned(case)) for case in plan.cases]
    spares = [host for host in allocator.standing if host.name in plan.cluster.spares]
    spare_casts = [
        (case, (spare, *planned[1:]))
        for case, planned in casts
        for spare in spares
        if spare.name in plan.cluster.spares_of(case.settings.vendor)
    ]
    planned_hosts = [host for host in allocator.standing if host not in spares]
    return Casting(planned_hosts, casts), Casting(spares, spare_casts)


def places_of(
    hosts: Sequence[Host], casts: Sequence[tuple[CasePlan, Sequence[Host]]]
) -> dict[str, tuple[Place, ...]]:
    """Host -> the places that it has in the cases."""
    places: dict[str, list[Place]] = {host.name: [] for host in hosts}
    for case, of_case in casts:
        addresses = tuple(host.address for host in of_case)
        for rank, host in enumerate(of_case):
            if host.name in places:
                places[host.name].append(Place(case, rank, addresses))
    return {name: tuple(of_host) for name, of_host in places.items()}


async def _check_host(plan: Plan, runtime: Runtime, use: HostUse, turns: asyncio.Semaphore) -> list[Check]:
    way = await outcome(opened, plan, runtime, use)
    if way.status is not Status.OK:
        return [replace(way, name=REACHABLE)]
    async with turns:
        reached, *others = await usual(plan, runtime, use, reachable)
    return [reached, *others] if reached.status is Status.OK else [reached]


async def usual(plan: Plan, runtime: Runtime, use: HostUse, *before: Checker[HostUse]) -> list[Check]:
    """What the preflight's checks give of a host to which there is a way; over ssh they go there as one."""
    shared = replace(use, transport=use.transport.together())
    meters = (power_meter,) if plan.cluster.meters else ()  # a column that few tables need
    uses = {checker: use if checker in ALONE else shared for checker in (*before, *CHECKS, *meters)}
    return await asyncio.gather(*(outcome(checker, plan, runtime, of) for checker, of in uses.items()))


async def outcomes(checkers: Sequence[Checker[Use]], plan: Plan, runtime: Runtime, use: Use) -> list[Check]:
    """What these checks of one host give, all made at once."""
    return await asyncio.gather(*(outcome(checker, plan, runtime, use) for checker in checkers))


async def opened(plan: Plan, runtime: Runtime, use: HostUse) -> str:
    """There is a way to the host."""
    await use.transport.open()
    return ""


async def reachable(plan: Plan, runtime: Runtime, use: HostUse) -> str:
    """The host runs a command, and tells which machine it is."""
    await use.transport.open()
    done = await use.transport.run(["sh", "-c", ASK], timeout=REACHABLE_TIMEOUT_S)
    system, machine = machine_in(done.stdout)
    use.facts.update({MACHINE: machine} if machine else {})
    return system
