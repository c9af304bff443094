"""Power and energy of a round, from the nodes' telemetry over the training's own window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from utils.errors import FlagPerfError
from utils.events import Event, EventName
from utils.figures import TRAINING, Figure, rate
from utils.telemetry import (
    TELEMETRY_FILE,
    Measurement,
    Telemetry,
    Window,
    average_power,
    energy_over,
    max_power,
    read_telemetry,
)
from utils.telemetry.windows import best_power_source

# Below this the energy of a part of the window would be set against the samples of the whole.
LEAST_COVERAGE = 0.95
UNITS = {"energy": "J/node", "avg_power": "W/node", "max_power": "W/node", "samples_per_joule": "samples/J"}


def power_figures(folders: Sequence[Path], events: Sequence[Event]) -> dict[str, Figure]:
    """`energy`, `avg_power`, `max_power` (mean over the nodes) and `samples_per_joule`."""
    window = training_window(events)
    if isinstance(window, str):
        return _none(window)
    measured = [_node(folder, window) for folder in folders]
    for found in measured:
        if isinstance(found, str):
            return _none(found)
    nodes = [found for found in measured if not isinstance(found, str)]
    figures = {
        name: _mean([node[name] for node in nodes], unit) for name, unit in UNITS.items() if name in nodes[0]
    }
    covered = min(node["energy"].coverage for node in nodes)
    return {**figures, "samples_per_joule": _per_joule(figures["energy"], covered, len(nodes), events)}


def training_window(events: Sequence[Event]) -> Window | str:
    """TRAIN_START..TRAIN_END in wall-clock time, or the reason why there is none."""
    at = {event.name: event.time_ms for event in events}
    start, end = at.get(EventName.TRAIN_START.value), at.get(EventName.TRAIN_END.value)
    if not start or not end:
        return "TRAIN_START or TRAIN_END was not reported"
    return Window(start, end) if end > start else "TRAIN_END does not come after TRAIN_START"


def _node(folder: Path, window: Window) -> dict[str, Measurement] | str:
    try:
        telemetry = read_telemetry(folder / TELEMETRY_FILE)
    except FlagPerfError as error:
        return str(error).splitlines()[0]
    source = best_power_source(telemetry)
    if source is None:
        return _why_none(telemetry)
    return {
        "energy": energy_over(telemetry, window, source),
        "avg_power": average_power(telemetry, window, source),
        "max_power": max_power(telemetry, window, source),
    }


def _why_none(telemetry: Telemetry) -> str:
    reasons = [f"{info.source}: {info.reason}" for info in telemetry.sources if info.reason]
    return "; ".join(reasons) or "no power source on the node"


def _mean(nodes: Sequence[Measurement], unit: str) -> Figure:
    missing = [node.reason for node in nodes if node.value is None]
    values = [node.value for node in nodes if node.value is not None]
    if missing or not values:
        return Figure(None, unit, TRAINING, missing[0] if missing else "not measured")
    covered = min(node.coverage for node in nodes)
    reasons = "".join(f"; {node.reason}" for node in nodes if node.reason)
    source = f"{nodes[0].source}; mean of {len(nodes)} node(s); {covered:.0%} of the window sampled{reasons}"
    return Figure(sum(values) / len(values), unit, TRAINING, source)


def _per_joule(energy: Figure, covered: float, nodes: int, events: Sequence[Event]) -> Figure:
    if energy.value is not None and covered < LEAST_COVERAGE:
        reason = f"only {covered:.0%} of the window was sampled, but the samples are of all of it"
        return Figure(None, UNITS["samples_per_joule"], TRAINING, reason)
    finished = next((event.value for event in events if event.name == EventName.FINISHED), {})
    samples = finished.get("num_trained_samples")
    if energy.value is None or not isinstance(samples, (int, float)):
        return Figure(None, UNITS["samples_per_joule"], TRAINING, energy.source)
    value = rate(float(samples), energy.value * nodes)
    return Figure(value, UNITS["samples_per_joule"], TRAINING, f"samples / energy of {nodes} node(s)")


def _none(reason: str) -> dict[str, Figure]:
    return {name: Figure(None, unit, TRAINING, reason) for name, unit in UNITS.items()}
