"""Preflight: all hosts at once, every check, one table; nothing is launched where one fails."""

from __future__ import annotations

from collections.abc import Sequence

from run_benchmarks.hosts.base import Host
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.caches import caches
from run_benchmarks.stages.checkpoints import checkpoints
from run_benchmarks.stages.checks import ALL_CHECKS, Check, Checker, HostUse, Place, Status
from run_benchmarks.stages.fan_out import on_all
from utils.errors import FlagPerfError

REACHABLE = "reachable"  # the check's name
REACHABLE_TIMEOUT_S = 30.0
CHECKS: tuple[Checker, ...] = (*ALL_CHECKS, caches, checkpoints)


async def preflight(
    plan: Plan, runtime: Runtime, hosts: Sequence[Host], casts: Sequence[tuple[CasePlan, Sequence[Host]]]
) -> dict[str, list[Check]]:
    """Check `hosts` for the cases that run on them.

    Args:
        casts: the cases, each with its hosts by node rank.

    Returns:
        Host -> its checks. A host that is not reached has that one check, as an error.
    """
    uses = {host.name: _use(host, casts) for host in hosts}
    results = await on_all(list(uses), lambda name: _check_host(plan, runtime, uses[name]))
    return {
        name: [_unreachable(result)] if isinstance(result, FlagPerfError) else result
        for name, result in results.items()
    }


def _use(host: Host, casts: Sequence[tuple[CasePlan, Sequence[Host]]]) -> HostUse:
    places = tuple(
        Place(case, hosts.index(host), tuple(each.address for each in hosts))
        for case, hosts in casts
        if host in hosts
    )
    return HostUse(host.transport, places)


async def _check_host(plan: Plan, runtime: Runtime, use: HostUse) -> list[Check]:
    reached = await use.transport.run(["uname", "-sr"], timeout=REACHABLE_TIMEOUT_S)
    checks = [Check(REACHABLE, Status.OK, reached.stdout.strip())]
    results = await on_all(list(CHECKS), lambda check: check(plan, runtime, use))
    for check, result in results.items():
        if isinstance(result, FlagPerfError):
            name = check.__name__.replace("_", " ")
            checks.append(Check(name, Status.ERROR, result.message, result.remedy))
        else:
            checks.append(result)
    return checks


def _unreachable(error: FlagPerfError) -> Check:
    return Check(REACHABLE, Status.ERROR, error.message, error.remedy)
