"""A row a node; where there is no room for all, alike nodes are put into one and those that differ are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from run_benchmarks.display.power_meter import Power
from run_benchmarks.display.progress import Progress
from run_benchmarks.display.rows import Row
from run_benchmarks.names import Node


def node_rows(progress: Progress, most: int) -> list[Row]:
    """At most `most` rows (at least one) for all nodes of the round."""
    nodes, powers = progress.nodes, progress.powers()
    if len(nodes) <= most:
        return [_row(progress, node, powers) for node in nodes]
    usual = Counter(progress.stages.values()).most_common(1)[0][0]
    alike = [node for node in nodes if progress.stages[node] == usual]
    others = [node for node in nodes if progress.stages[node] != usual]
    shown = others if len(others) < most else others[: max(0, most - 2)]
    rows = [Row(f"{len(alike)} nodes", power_text(alike, powers), usual)]
    rows += [_row(progress, node, powers) for node in shown]
    left = len(others) - len(shown)
    return [*rows, Row(f"{left} nodes", "", "other stages")][:most] if left else rows


def power_text(nodes: Sequence[Node], powers: Mapping[Node, Power]) -> str:
    """The power of all `nodes` together, what of them it speaks of, and of how many where not all are measured."""
    measured = [powers[node] for node in nodes if node in powers]
    scopes = {power.scope for power in measured}
    if len(scopes) != 1:  # none, or what is not to be added
        return ""
    text = f"{watts(sum(power.watts for power in measured))} ({scopes.pop().value})"
    return text if len(measured) == len(nodes) else f"{text}, {len(measured)} of {len(nodes)} nodes"


def watts(number: float) -> str:
    """W, or kW from ten of them on."""
    return f"{number:.0f} W" if number < 9999.5 else f"{number / 1000:.1f} kW"


def _row(progress: Progress, node: Node, powers: Mapping[Node, Power]) -> Row:
    words = progress.training.search.of_node(node.rank) or progress.stages[node]
    return Row(node.host, power_text([node], powers), f"node {node.rank}: {words}")
