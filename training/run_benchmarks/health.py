"""What a preflight means: shown to the user, and as a round's failure."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from run_benchmarks.plan.as_dict import plain
from run_benchmarks.plan.host_ranges import general
from run_benchmarks.results.losses import host_lost
from run_benchmarks.results.preflight_fold import count_text, fold
from run_benchmarks.results.tables import preflight_text, remarks
from run_benchmarks.run_log import LONG, SHORT
from run_benchmarks.session import Session
from run_benchmarks.stages.checks import Check, Status, with_status
from run_benchmarks.stages.preflight import REACHABLE, castings, preflight
from run_benchmarks.stages.readings import Readings
from run_benchmarks.stages.same_machine import same_machines
from utils.numbers import counted
from utils.records import Failure, FailureClass, Stage, Verdict

# Checks of what the user's files name, and that hosts of one cluster have alike.
BY_CONFIGURATION = frozenset(("engine", "deploy path", "data", "software", "caches", "checkpoints"))
LEVELS = {Status.WARNING: "WARNING", Status.ERROR: "ERROR"}


def report_health(checks: Mapping[str, list[Check]]) -> None:
    """Log the table of the checks, and what deserves a word or forbids to go on; on a terminal this alone."""
    if not checks:  # hosts that are known when they are granted
        return
    for line in preflight_text(checks).splitlines():
        LONG.info(line)
    for status, level in LEVELS.items():
        for line in remarks(checks, status):
            LONG.log(level, line)
    SHORT.info(count_text(checks))
    for status, text in fold(checks):
        SHORT.log(LEVELS[status], text)


def unhealthy(checks: Mapping[str, list[Check]]) -> Failure | None:
    """The failure of a round whose hosts gave these checks; None where all are healthy."""
    for host, check in with_status(checks, Status.ERROR):
        if check.name == REACHABLE:
            return host_lost(host, Stage.PREFLIGHT, check.detail, check.failure_class, check.remedy)
        message = f"{check.name}: {check.detail}"
        is_theirs = _is_of_all(check.name, checks)
        other = FailureClass.HOSTS_NOT_PREPARED if is_theirs else FailureClass.HOST_NOT_HEALTHY
        kind = check.failure_class or other
        return Failure(Verdict.FAILED, Stage.PREFLIGHT, kind, host, message, "", check.remedy)
    return None


def _is_of_all(name: str, checks: Mapping[str, list[Check]]) -> bool:
    """Whether all hosts failed this check alike, of what the configuration names: other hosts would fail it, too.

    One host alone shows that of no other: it may be the only one that lacks a mount.
    """
    failed = [check for _, check in with_status(checks, Status.ERROR) if check.name == name]
    of_hosts = zip(checks, failed, strict=False)
    return (
        name in BY_CONFIGURATION
        and len(failed) == len(checks) > 1
        and len({general(check.detail, host) for host, check in of_hosts}) == 1
    )


def refusal_of(checks: Mapping[str, list[Check]]) -> str:
    """Why nothing is launched on hosts that gave these checks; empty where all are healthy."""
    errors = with_status(checks, Status.ERROR)
    if not errors:
        return ""
    host, check = errors[0]
    more = f", and {counted(len(errors) - 1, 'more error')}" if len(errors) > 1 else ""
    return f"the preflight failed: {host}: {check.name}: {' '.join(check.detail.split())}{more}"


async def check_standing_hosts(session: Session) -> None:
    """The preflight of those hosts that are there before the first round, into `session.checks`."""
    allocator, plan = session.allocator, session.plan
    readings = Readings()
    for of_some in await asyncio.gather(
        *(
            preflight(plan, session.runtime, each.hosts, each.casts, readings)
            for each in castings(plan, allocator)
        )
    ):
        session.checks.update(of_some)
    for host, error in same_machines(plan.cluster, session.checks).items():
        session.checks[host].append(error)
    session.journal.write("checked", checks=plain(session.checks))
