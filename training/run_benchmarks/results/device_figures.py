"""The round's figures of its accelerators besides power: over all nodes, from what each node's telemetry comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from run_benchmarks.results.telemetry_result import Measured, NodeTelemetry
from utils.figures import DEFINITIONS, FULL_COVERAGE, LEAST_COVERAGE, Figure
from utils.telemetry.records import Scope

# Figure of the round -> that of a node's source that it is made of.
OF_NODES = {
    "utilisation": "utilisation",
    "max_device_memory": "max_memory",
    "avg_temperature": "avg_temperature",
    "max_temperature": "max_temperature",
    "throttled": "throttled",
}
NAMES = tuple(OF_NODES)
LARGEST = frozenset({"max_device_memory", "max_temperature"})


def device_figures(nodes: Mapping[str, NodeTelemetry]) -> dict[str, Figure]:
    """Each of NAMES: the mean over the nodes, or of some the largest; null where a node lacks it."""
    return {name: _figure(name, of_node, nodes) for name, of_node in OF_NODES.items()}


def _figure(name: str, of_node: str, nodes: Mapping[str, NodeTelemetry]) -> Figure:
    definition = DEFINITIONS[name]
    there: dict[str, Measured] = {}
    for node, telemetry in nodes.items():
        each = _of_accelerators(telemetry, of_node)
        if each is None or each.value is None:
            return definition.figure(None, f"{node}: no source of accelerators reads it")
        there[node] = each
    if not there:
        return definition.figure(None, "no node left logs")
    covered = min(1.0 if each.coverage is None else each.coverage for each in there.values())
    sampled = f"only {100 * covered:.3g} % of the window was sampled"
    if covered < LEAST_COVERAGE:
        return replace(definition.figure(None, sampled), coverage=covered)
    values = [each.value for each in there.values() if each.value is not None]
    value = max(values) if name in LARGEST else sum(values) / len(values)
    where = next((node for node, each in there.items() if each.value == value), "")
    source = f"on {where}" if name in LARGEST else f"mean of {len(values)} nodes"
    caveats = [f"{node}: {each.source}" for node, each in there.items() if each.source][:1]
    caveats += [sampled] if covered < FULL_COVERAGE else []
    source = source if len(values) > 1 else "the vendor's monitor"
    return replace(definition.figure(value, source), coverage=covered, caveat="; ".join(caveats))


def _of_accelerators(node: NodeTelemetry, figure: str) -> Measured | None:
    sources = (each for each in node.sources.values() if each.scope is Scope.ACCELERATOR)
    return next((each.figures[figure] for each in sources if figure in each.figures), None)
