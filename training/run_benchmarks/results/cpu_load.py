"""What a host's CPUs did while it trained, and what of it the training's own control group."""

from __future__ import annotations

from dataclasses import dataclass

from run_benchmarks.results.node_readings import NodeReadings
from run_benchmarks.results.telemetry_result import NodeTelemetry

CPU, CORES, TASK = (
    "cpu",
    "cores",
    "task",
)  # the sources of the whole, of how many there are, of the training's part
LEAST_S = 10.0  # in a shorter time a second of sampling is a part of the load


@dataclass(frozen=True)
class CpuLoad:
    """busy, own: parts of all CPUs, 0 to 1. own_s: from the first to the last reading of what is the training's."""

    cpus: int
    busy: float
    own: float
    own_s: float

    @property
    def foreign(self) -> float:
        """What others than the training used."""
        return self.busy - self.own


def cpu_load(node: NodeTelemetry, readings: NodeReadings) -> CpuLoad | str:
    """It, or why others' load cannot be told from the training's."""
    source = node.sources.get(CPU)
    use = source.figures.get("utilisation") if source else None
    if use is None or use.value is None:
        return why_unread(node, CPU)
    cpus = sum(source == CORES for source, _ in readings.training.totals())
    if not cpus:
        return why_unread(node, CORES)
    growths = readings.counters.growths()
    own = next((each for key, each in growths.items() if key[0::2] == (TASK, "cpu_s")), None)
    if own is None:
        return why_unread(node, TASK)
    if own.seconds < LEAST_S:
        return f"{TASK}: its readings are of {own.seconds:.3g} s, and {LEAST_S:g} s are needed"
    return CpuLoad(cpus, use.value, own.amount / own.seconds / cpus, own.seconds)


def why_unread(node: NodeTelemetry, source: str) -> str:
    """Why there is nothing of a source, as its monitor told or did not."""
    reasons = (reason for reason in node.missing if reason.startswith(f"{source}:"))
    return next(reasons, f"{source}: it was not read while training")
