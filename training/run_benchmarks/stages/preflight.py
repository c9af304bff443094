"""Preflight: all hosts at once, every check, one table; nothing is launched where one fails."""

from __future__ import annotations

from collections.abc import Mapping

from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checkpoints import checkpoints
from run_benchmarks.stages.checks import ALL_CHECKS, Check, Checker, HostUse, Status
from run_benchmarks.stages.fan_out import on_all
from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError

REACHABLE_TIMEOUT_S = 30.0
CHECKS: tuple[Checker, ...] = (*ALL_CHECKS, checkpoints)


async def preflight(
    plan: Plan, runtime: Runtime, transports: Mapping[str, Transport]
) -> dict[str, list[Check]]:
    """Host -> its checks. A host that is not reached has that one check, as an error."""
    uses = {host: _use(plan, host, transport) for host, transport in transports.items()}
    results = await on_all(list(uses), lambda host: _check_host(plan, runtime, uses[host]))
    return {
        host: [_unreachable(result)] if isinstance(result, FlagPerfError) else result
        for host, result in results.items()
    }


def failed(checks: Mapping[str, list[Check]]) -> list[tuple[str, Check]]:
    """The checks that forbid a run, by host."""
    return [
        (host, check) for host, found in checks.items() for check in found if check.status is Status.ERROR
    ]


def warned(checks: Mapping[str, list[Check]]) -> list[tuple[str, Check]]:
    """The checks that deserve a word, by host."""
    return [
        (host, check) for host, found in checks.items() for check in found if check.status is Status.WARNING
    ]


def _use(plan: Plan, host: str, transport: Transport) -> HostUse:
    cases = tuple((case, case.hosts.index(host)) for case in plan.cases if host in case.hosts)
    return HostUse(transport, cases)


async def _check_host(plan: Plan, runtime: Runtime, use: HostUse) -> list[Check]:
    reached = await use.transport.run(["uname", "-sr"], timeout=REACHABLE_TIMEOUT_S)
    found = [Check("reachable", Status.OK, reached.stdout.strip())]
    results = await on_all(list(CHECKS), lambda check: check(plan, runtime, use))
    for check, result in results.items():
        if isinstance(result, FlagPerfError):
            name = check.__name__.replace("_", " ")
            found.append(Check(name, Status.ERROR, result.message, result.remedy))
        else:
            found.append(result)
    return found


def _unreachable(error: FlagPerfError) -> Check:
    return Check("reachable", Status.ERROR, error.message, error.remedy)
