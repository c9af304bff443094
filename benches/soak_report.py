"""What soak.py prints: a table of faults and verdicts, what the controllers held, what was left, and a line of JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soak_accounts import Sample, kib_per_round, leaks

NO_FAULT = "none"
WRONG = "wrong"  # beside the ways in which rounds ended: how many of them did so wrongly


@dataclass(frozen=True)
class Account:
    """A soak that has ended.

    seen: kind of fault -> how its rounds ended, and how many of them were WRONG. problems: what was not right, in
    words. left: what was left behind. result_kib: the size of a round's result.
    """

    seen: Mapping[str, Counter[str]]
    samples: Sequence[Sample]
    controllers: int
    problems: Sequence[str]
    left: Sequence[str]
    result_kib: float = 0.0

    @property
    def complaints(self) -> list[str]:
        """All that is wrong, in words."""
        return [*self.problems, *leaks(self.samples, self.result_kib), *self.left]

    def rounds(self, *kinds: str) -> int:
        """How many rounds had a fault of these kinds."""
        return sum(self.seen[kind].total() - self.seen[kind][WRONG] for kind in kinds)


def report(account: Account, seconds: float) -> int:
    """Print the tables and, last, one JSON object; the exit code."""
    print(f"{'fault':12} {'rounds':>6} {'right':>6} {'wrong':>6}  ended as")
    for kind, ends in sorted(account.seen.items()):
        ways = ", ".join(f"{end} {number}" for end, number in ends.most_common() if end != WRONG)
        rounds = account.rounds(kind)
        print(f"{kind:12} {rounds:6} {rounds - ends[WRONG]:6} {ends[WRONG]:6}  {ways}")
    values = _print_held(account)
    for text in account.complaints:
        print(f"WRONG: {text}")
    faulty = [kind for kind in account.seen if kind != NO_FAULT]
    counts = {
        "rounds": account.rounds(*account.seen),
        "faults": account.rounds(*faulty),
        "wrong_verdicts": sum(ends[WRONG] for ends in account.seen.values()),
        "left": len(account.left),
        "problems": len(account.complaints) - len(account.left),
        "seconds": round(seconds),
    }
    print(json.dumps({**counts, **values}))
    return 1 if account.complaints else 0


def _print_held(account: Account) -> dict[str, object]:
    """What the controllers held, as a table and as values."""
    nothing = Sample(0, 0, 0, 0, 0)
    first, last = (account.samples[0], account.samples[-1]) if account.samples else (nothing, nothing)
    slope = kib_per_round(account.samples)
    trend = (
        "too few rounds for a trend"
        if slope is None
        else f"{slope:+.1f} KiB a round, whose result has {account.result_kib:.1f}"
    )
    rss = [round(sample.rss_kib / 1024, 1) for sample in (first, last)]
    print(f"{'controller':12} {'first':>8} {'last':>8}")
    print(f"{'RSS, MiB':12} {rss[0]:8} {rss[1]:8}  {trend}")
    print(f"{'descriptors':12} {first.descriptors:8} {last.descriptors:8}  {account.controllers} controllers")
    print(f"{'children':12} {first.children:8} {last.children:8}")
    return {
        "controllers": account.controllers,
        "rss_mib": rss,
        "rss_kib_per_round": None if slope is None else round(slope, 1),
        "result_kib": round(account.result_kib, 1),
        "descriptors": [first.descriptors, last.descriptors],
    }
