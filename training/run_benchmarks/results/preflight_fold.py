"""The preflight for a terminal: a count of what is well, and rows of what is not, alike hosts in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from run_benchmarks.plan import host_ranges
from run_benchmarks.plan.host_ranges import general
from run_benchmarks.stages.checks import Check, Status, with_status

# Of one check that hosts answer differently so many answers are shown; the log's file has all.
MOST_ANSWERS = 5
WIDEST_HOSTS = 30

ASKED_FOR = (Status.OK, Status.WARNING, Status.ERROR)
Row = tuple[Status, str, Check]  # status, hosts, the check


def count_text(checks: Mapping[str, Sequence[Check]]) -> str:
    """`2 hosts: 13 checks ok`, or how many of those that were asked for. A check is ok if it is on every host."""
    asked = [check for of_host in checks.values() for check in of_host if check.status in ASKED_FOR]
    names = {check.name for check in asked}
    good = len(names - {check.name for check in asked if check.status is not Status.OK})
    count = f"{good} of {len(names)}" if good < len(names) else str(good)
    return (
        f"{len(checks)} host{'s' if len(checks) > 1 else ''}: {count} check{'' if count == '1' else 's'} ok"
    )


def fold(checks: Mapping[str, Sequence[Check]], all_in: str = "flagperf_run.log") -> list[tuple[Status, str]]:
    """A text a row of what is not well, warnings first: hosts, check and what it saw, and below what to do.

    Args:
        all_in: what has every answer, where there are too many.
    """
    rows = [row for status in (Status.WARNING, Status.ERROR) for row in _rows(checks, status, all_in)]
    hosts = min(max((len(hosts) for _, hosts, _ in rows), default=0), WIDEST_HOSTS)
    names = max((len(check.name) for _, _, check in rows), default=0)
    return [
        (status, f"{host:<{hosts}}  {check.name:<{names}}  {' '.join(check.detail.split())}{_remedy(check)}")
        for status, host, check in rows
    ]


def _rows(checks: Mapping[str, Sequence[Check]], status: Status, all_in: str) -> list[Row]:
    """Hosts that gave the same answer share a row; of one check's many answers some are shown."""
    answers: dict[str, dict[Check, dict[str, Check]]] = {}
    for host, check in with_status(checks, status):
        same = replace(check, detail=general(check.detail, host), remedy=general(check.remedy, host))
        answers.setdefault(check.name, {}).setdefault(same, {})[host] = check
    rows: list[Row] = []
    for name, of_check in answers.items():
        for same, of_hosts in list(of_check.items())[:MOST_ANSWERS]:
            check = same if len(of_hosts) > 1 else next(iter(of_hosts.values()))
            rows.append((status, hosts_text(list(of_hosts)), check))
        left = [host for hosts in list(of_check.values())[MOST_ANSWERS:] for host in hosts]
        if left:
            more = Check(name, status, f"the same with other figures: {all_in} has them")
            rows.append((status, f"{len(left)} more hosts" if len(left) > 1 else left[0], more))
    return rows


def hosts_text(hosts: Sequence[str]) -> str:
    """Hosts as a part of a line: all, or of many the first."""
    text = host_ranges.fold(hosts)
    return text if len(text) <= WIDEST_HOSTS or len(hosts) < 3 else f"{hosts[0]} and {len(hosts) - 1} more"


def _remedy(check: Check) -> str:
    return f"\n-> {check.remedy}" if check.remedy else ""
