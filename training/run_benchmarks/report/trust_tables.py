"""What a report shows of how far a round can be trusted: what disturbed it, who held it up, what the monitors took."""

from __future__ import annotations

from collections.abc import Sequence

from run_benchmarks.results.disturbances import LIMITS
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.stragglers import PARTS
from utils.numbers import shown

MOST_ROWS = 512
COUNTS = ("sampled", "failed", "late", "missed")


def disturbance_rows(result: RoundResult, labels: Sequence[str]) -> list[tuple[str, str, str, str, str]]:
    """Kind, node, device, what was seen, and why that is too much."""
    return [
        (
            each.kind.value,
            _label(each.node, labels),
            f"{each.source} {each.device}".strip() if each.device else "",
            each.what,
            LIMITS[each.kind].reason,
        )
        for each in result.disturbances
    ]


def straggler_rows(
    result: RoundResult, labels: Sequence[str]
) -> list[tuple[str, str, str, str, str, str, str]]:
    """Node, rank, its own milliseconds of a step, the median's, z, what it is longer for, what of a step it costs."""
    return [
        (
            _label(each.node, labels),
            "all" if each.rank is None else str(each.rank),
            shown(1000 * each.seconds),
            shown(1000 * each.median_s),
            f"{each.score:.3g}",
            PARTS.get(each.part, each.part),
            f"{each.loss:.0%}",
        )
        for each in result.stragglers
    ]


def monitor_rows(
    result: RoundResult, labels: Sequence[str]
) -> list[tuple[str, str, str, str, str, str, str]]:
    """Node, processor seconds of its monitor, their part of a CPU, samples taken, failed, late and missed."""
    costs = result.provenance.monitors if result.provenance else ()
    rows = []
    for label, cost in zip(labels, costs, strict=False):
        if cost is not None:
            sampled, failed, late, missed = (
                str(sum(each.get(count, 0) for each in cost.sources.values())) for count in COUNTS
            )
            share = f"{100 * cost.of_a_core:.2g}"
            rows.append((label, shown(cost.cpu_s), share, sampled, failed, late, missed))
    return rows[:MOST_ROWS]


def _label(node: int | None, labels: Sequence[str]) -> str:
    return labels[node] if node is not None and 0 <= node < len(labels) else ""
