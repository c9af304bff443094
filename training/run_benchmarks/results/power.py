"""Power and energy of a round, from the nodes' telemetry over the training's own window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from run_benchmarks.results.telemetry_file import read_telemetry
from utils.errors import FlagPerfError
from utils.events import Event, EventName
from utils.figures import DEFINITIONS, FINISHED, Figure, number_in, rate
from utils.telemetry.lines import TELEMETRY_FILE
from utils.telemetry.records import Measurement, Scope, Telemetry, Window
from utils.telemetry.windows import average_power, best_power_source, energy_over, max_power

# Below this the energy of a part of the window would be set against the samples of the whole.
LEAST_COVERAGE = 0.95
MEASURED = {"energy": energy_over, "avg_power": average_power, "max_power": max_power}
NAMES = (*MEASURED, "samples_per_joule")


def power_figures(folders: Sequence[Path], events: Sequence[Event]) -> dict[str, Figure]:
    """`energy`, `avg_power`, `max_power` (mean over the nodes) and `samples_per_joule`."""
    window = training_window(events)
    if isinstance(window, str):
        return _none(window)
    nodes = []
    for folder in folders:
        node = _node(folder, window)
        if isinstance(node, str):
            return _none(node)
        nodes.append(node)
    if len({node.scope for node in nodes}) > 1:
        scopes = ", ".join(node.scope.value for node in nodes)
        return _none(f"the nodes measure different things, of which there is no mean: {scopes}")
    figures = {name: _mean(name, [node.measured[name] for node in nodes]) for name in MEASURED}
    covered = min(node.measured["energy"].coverage for node in nodes)
    return {**figures, "samples_per_joule": _per_joule(figures["energy"], covered, len(nodes), events)}


def training_window(events: Sequence[Event]) -> Window | str:
    """TRAIN_START..TRAIN_END in wall-clock time, or the reason why there is none."""
    at = {event.name: event.time_ms for event in events}
    start, end = at.get(EventName.TRAIN_START.value), at.get(EventName.TRAIN_END.value)
    if not start or not end:
        return "TRAIN_START or TRAIN_END was not reported"
    return Window(start, end) if end > start else "TRAIN_END does not come after TRAIN_START"


@dataclass(frozen=True)
class _Node:
    """What one node measured; `scope`: of which part of it the figures speak."""

    scope: Scope
    measured: Mapping[str, Measurement]


def _node(folder: Path, window: Window) -> _Node | str:
    """The node's figures, or the reason why there are none."""
    try:
        telemetry = read_telemetry(folder / TELEMETRY_FILE)
    except FlagPerfError as error:
        return str(error).splitlines()[0]
    source = best_power_source(telemetry)
    info = telemetry.info(source) if source else None
    if source is None or info is None:
        return _why_none(telemetry)
    return _Node(info.scope, {name: over(telemetry, window, source) for name, over in MEASURED.items()})


def _why_none(telemetry: Telemetry) -> str:
    reasons = [f"{info.source}: {info.reason}" for info in telemetry.sources if info.reason]
    return "; ".join(reasons) or "no power source on the node"


def _mean(name: str, nodes: Sequence[Measurement]) -> Figure:
    definition = DEFINITIONS[name]
    missing = [node.reason for node in nodes if node.value is None]
    values = [node.value for node in nodes if node.value is not None]
    if missing or not values:
        return definition.figure(None, missing[0] if missing else "not measured")
    covered = min(node.coverage for node in nodes)
    reasons = "".join(f"; {node.reason}" for node in nodes if node.reason)
    source = f"{nodes[0].source}; mean of {len(nodes)} node(s); {covered:.0%} of the window sampled{reasons}"
    return definition.figure(sum(values) / len(values), source)


def _per_joule(energy: Figure, covered: float, nodes: int, events: Sequence[Event]) -> Figure:
    definition = DEFINITIONS["samples_per_joule"]
    if energy.value is None:
        return definition.figure(None, energy.source)
    if covered < LEAST_COVERAGE:
        reason = f"only {covered:.0%} of the window was sampled, but the samples are of all of it"
        return definition.figure(None, reason)
    finished = next((event.value for event in events if event.name == EventName.FINISHED), {})
    samples = number_in(finished, "num_trained_samples")
    if samples is None:
        return definition.figure(None, f"num_trained_samples is not in the {FINISHED}")
    return definition.figure(rate(samples, energy.value * nodes), f"samples / energy of {nodes} node(s)")


def _none(reason: str) -> dict[str, Figure]:
    return {name: DEFINITIONS[name].figure(None, reason) for name in NAMES}
