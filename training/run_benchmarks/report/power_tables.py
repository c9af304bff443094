"""What a report shows of power besides its lines: by node and phase, and whether sources agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from run_benchmarks.results.phases import Phase
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.telemetry_result import Measured, Reconciliation, SourceTelemetry
from utils.figures import FULL_COVERAGE
from utils.numbers import shown
from utils.telemetry.records import Scope

MOST_ROWS = 512  # of a round: a report has more than the tables
MARK = "*"  # behind what was sampled in part, or is contradicted by another source


@dataclass(frozen=True)
class PowerTable:
    """A row a node and source: mean power and energy of each phase. more: rows that are left out."""

    phases: Sequence[str]
    rows: Sequence[tuple[str, str, str, Sequence[str], str]]
    more: int


def power_table(result: RoundResult, labels: Sequence[str]) -> PowerTable | None:
    """Of a round in which any power was measured."""
    sources = list(_sources(result, labels))
    if not sources:
        return None
    phases = [phase for phase in Phase if any(phase in source.phases for _, _, source, _ in sources)]
    rows = [
        (
            label,
            name,
            source.scope.value,
            [_text(source, phase, is_contradicted=is_contradicted) for phase in phases],
            gaps_text(source),
        )
        for label, name, source, is_contradicted in sources[:MOST_ROWS]
    ]
    return PowerTable([phase.value.replace("_", "-") for phase in phases], rows, len(sources) - len(rows))


def _sources(result: RoundResult, labels: Sequence[str]) -> Iterator[tuple[str, str, SourceTelemetry, bool]]:
    """Of each node and source what it came to, and whether another one contradicts it."""
    nodes, compared = (
        (result.telemetry.nodes, result.telemetry.reconciliation) if result.telemetry else ((), ())
    )
    contradicted = {(each.node, name) for each in compared if each.agrees is False for name in each.sources}
    for rank, (label, node) in enumerate(zip(labels, nodes, strict=False)):
        for name, source in node.sources.items():
            if source.scope is not Scope.HOST:
                yield label, name, source, (rank, name) in contradicted


def _text(source: SourceTelemetry, phase: Phase, *, is_contradicted: bool) -> str:
    power = source.phases.get(phase)
    if power is None or power.avg_power.value is None:
        return "-"
    watts, joules = (
        _shown(each, is_contradicted=is_contradicted) for each in (power.avg_power, power.energy)
    )
    return f"{watts} W, {joules} J"


def _shown(each: Measured, *, is_contradicted: bool) -> str:
    if each.value is None:
        return "-"
    return shown(each.value) + (MARK if is_contradicted or (each.coverage or 0.0) < FULL_COVERAGE else "")


def gaps_text(source: SourceTelemetry) -> str:
    """The longest time without a reading, and how many there are; empty without one."""
    if not source.gaps:
        return ""
    longest = max(source.gaps, key=lambda gap: gap.seconds)
    count = len(source.gaps) + source.more_gaps
    return f"{count}; the longest {longest.seconds:.3g} s, from {longest.start_s:.4g} s after TRAIN_START"


def reconciliation_rows(
    result: RoundResult, labels: Sequence[str]
) -> list[tuple[str, str, str, str, str, str]]:
    """Node, what was compared, both values, whether they agree, and what is allowed; those that do not come first."""
    compared = result.telemetry.reconciliation if result.telemetry else ()
    order = {False: 0, None: 1, True: 2}
    ordered = sorted(compared, key=lambda each: order[each.agrees])[:MOST_ROWS]
    return [_row(each, labels) for each in ordered]


def _row(each: Reconciliation, labels: Sequence[str]) -> tuple[str, str, str, str, str, str]:
    label = labels[each.node] if 0 <= each.node < len(labels) else str(each.node)
    first, second = ("-" if value is None else shown(value) for value in (each.first, each.second))
    verdict = {True: "yes", False: "no", None: "not known"}[each.agrees]
    return label, each.what, first, second, verdict, f"{each.tolerance:.0%}: {each.reason}"
