"""What differs between hosts that should be alike: the slowest or oddest host sets the pace of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from run_benchmarks.stages.checks import Check

# Facts that are each host's own, or come from measuring: name of the check -> those that are not compared.
# None: none of its facts.
OWN: Mapping[str, tuple[str, ...] | None] = {
    "host key": ("fingerprint",),
    "clock": None,
    "memory": ("available_gib",),
    "reachable": None,
    "power meter": None,
}
# Numbers that are alike within a factor.
FACTORS = {
    "total_gib": 1.02,
    "free_gib": 10.0,
    "bytes_per_s": 2.0,
    "latency_s": 10.0,
}
# Checks whose detail is a fact itself.
TELLING = ("engine",)
Value = float | str


@dataclass(frozen=True)
class Difference:
    """One thing that hosts of a group answer differently. answers: the commonest first, each with its hosts."""

    check: str
    fact: str
    group: str
    answers: tuple[tuple[Value, tuple[str, ...]], ...]


def differences(
    checks: Mapping[str, Sequence[Check]], groups: Mapping[str, Sequence[str]]
) -> list[Difference]:
    """What differs within each group, in the order of the checks."""
    return [each for name, hosts in groups.items() for each in _of_group(name, hosts, checks)]


def _of_group(
    group: str, hosts: Sequence[str], checks: Mapping[str, Sequence[Check]]
) -> Iterator[Difference]:
    values: dict[tuple[str, str], dict[str, Value]] = {}
    for host in hosts:
        for check in checks.get(host, ()):
            for fact, value in facts_of(check).items():
                values.setdefault((check.name, fact), {})[host] = value
    for (check_name, fact), of_hosts in values.items():
        answers = _answers(fact, of_hosts)
        if len(answers) > 1:
            yield Difference(check_name, fact, group, answers)


def facts_of(check: Check) -> dict[str, Value]:
    """What of a check should be equal on hosts that are alike."""
    if check.name in TELLING:
        return {"version": check.detail} if check.detail else {}
    left_out = OWN.get(check.name, ())
    return {} if left_out is None else {name: v for name, v in check.facts.items() if name not in left_out}


def _answers(fact: str, of_hosts: Mapping[str, Value]) -> tuple[tuple[Value, tuple[str, ...]], ...]:
    """Each value with its hosts; numbers that are alike within their factor are one answer."""
    factor = FACTORS.get(fact)
    numbers = [value for value in of_hosts.values() if isinstance(value, (int, float))]
    if factor and len(numbers) == len(of_hosts) and max(numbers) <= factor * min(numbers):
        return ()
    by_value: dict[Value, list[str]] = {}
    for host, value in of_hosts.items():
        by_value.setdefault(value, []).append(host)
    answers = sorted(by_value.items(), key=lambda answer: -len(answer[1]))
    return tuple((value, tuple(hosts)) for value, hosts in answers)
