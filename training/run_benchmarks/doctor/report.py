"""What the doctor found, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from run_benchmarks.doctor.differences import Difference
from run_benchmarks.doctor.examine import ALL_HOSTS, Findings
from run_benchmarks.results.preflight_fold import MOST_ANSWERS, count_text, fold, hosts_text
from run_benchmarks.results.table import NOT_MEASURED, aligned
from run_benchmarks.stages.checks import Check, Status
from utils.text_files import shortened

VERSION = 1
MARKS = {Status.OK: "ok", Status.SKIPPED: NOT_MEASURED, Status.WARNING: "warning", Status.ERROR: "ERROR"}
MOST_KINDS = 4  # of hosts, that have a column each
LONGEST_SEEN = 90


def text_of(findings: Findings) -> str:
    """A row a check with its outcome on each kind of host and what it saw; then what is not well, and what differs."""
    parts = [
        _table(findings.checks),
        "\n".join(text for _, text in fold(findings.checks, "--json")),
        _differences_text(findings.differences),
        f"{count_text(findings.checks)}, in {findings.seconds:.1f} s",
    ]
    return "\n\n".join(filter(None, parts))


def as_dict(findings: Findings) -> dict[str, Any]:
    """The same as JSON holds it; docs/doctor.md says what the names mean, and that they stay."""
    return {
        "version": VERSION,
        "healthy": findings.is_healthy,
        "seconds": round(findings.seconds, 3),
        "hosts": {host: {check.name: _check(check) for check in of} for host, of in findings.checks.items()},
        "differences": [
            {
                "check": each.check,
                "fact": each.fact,
                "group": each.group,
                "answers": [{"value": value, "hosts": list(hosts)} for value, hosts in each.answers],
            }
            for each in findings.differences
        ],
    }


def _check(check: Check) -> dict[str, Any]:
    return {
        "status": check.status.value,
        "detail": check.detail,
        "remedy": check.remedy,
        "facts": dict(check.facts),
    }


def _table(checks: Mapping[str, Sequence[Check]]) -> str:
    """Hosts whose checks ended alike share a column."""
    names = list(dict.fromkeys(check.name for of_host in checks.values() for check in of_host))
    kinds: dict[tuple[Status | None, ...], list[str]] = {}
    for host, of_host in checks.items():
        status = {check.name: check.status for check in of_host}
        kinds.setdefault(tuple(map(status.get, names)), []).append(host)
    shown = sorted(kinds.items(), key=lambda kind: -len(kind[1]))[:MOST_KINDS]
    rows = [["check", *(hosts_text(hosts) for _, hosts in shown), "seen"]]
    unasked = [name for name in names if _is_unasked(name, checks)]
    for number, name in enumerate(names):
        if name in unasked:
            continue
        marks = [MARKS[statuses[number] or Status.SKIPPED] for statuses, _ in shown]
        rows.append([name, *marks, _seen(name, checks)])
    hidden = sum(map(len, kinds.values())) - sum(len(hosts) for _, hosts in shown)
    more = f"\n{hidden} more hosts ended otherwise again: --json has each" if hidden else ""
    rest = f"\nnothing asks for: {', '.join(unasked)}" if unasked else ""
    return aligned(rows) + more + rest


def _is_unasked(name: str, checks: Mapping[str, Sequence[Check]]) -> bool:
    """Whether nothing asks any host for a check, and there is nothing more to say."""
    return not any(
        check.detail or check.status is not Status.SKIPPED
        for of_host in checks.values()
        for check in of_host
        if check.name == name
    )


def _seen(name: str, checks: Mapping[str, Sequence[Check]]) -> str:
    """What the hosts answered, where that is one thing; else the first host's answer, and from how many it differs."""
    details = [
        (host, " ".join(check.detail.split()))
        for host, of_host in checks.items()
        for check in of_host
        if check.name == name and check.detail
    ]
    if not details:
        return ""
    host, first = details[0]
    others = [other for other, detail in details if detail != first]
    of_whom = f" ({host}; another on {hosts_text(others)})" if others else ""
    return shortened(first, LONGEST_SEEN) + of_whom


def _differences_text(every: Sequence[Difference]) -> str:
    if not every:
        return ""
    return "\n".join(["differs between hosts that should be alike:", *map(_difference_text, every)])


def _difference_text(each: Difference) -> str:
    answers = [f"{value} on {hosts_text(hosts)}" for value, hosts in each.answers[:MOST_ANSWERS]]
    more = len(each.answers) - MOST_ANSWERS
    group = "" if each.group == ALL_HOSTS else f" ({each.group})"
    return (
        f"    {each.check}, {each.fact}{group}: {'; '.join(answers)}{f'; {more} more answers' * (more > 0)}"
    )
