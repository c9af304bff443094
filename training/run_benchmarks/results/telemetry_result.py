"""What telemetry comes to, node by node, as it stands in `result.json` under `telemetry`.

Of hundreds of nodes with eight devices each a number has no record of its own: unit, window, way to be better and
definition stand once in `figures`, and the devices of a source have a column a figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from run_benchmarks.results.phases import DEFINITIONS as PHASES
from run_benchmarks.results.phases import Phase
from utils.figures import LOWER, TRAINING
from utils.telemetry.records import Scope

# Of a round; with more devices than these the nodes behind them stand in the files alone.
MOST_NODES, MOST_ALL_DEVICES = 2_000, 20_000
MOST_SOURCES, MOST_DEVICES = 16, 64  # of a node, of a source
MOST_COMPARED = 10 * MOST_NODES  # sets of sources, of a round
MOST_GAPS = 20  # of a source


@dataclass(frozen=True)
class TelemetryFigure:
    """What a number under `nodes` is. of_source: how it follows from the devices' own, which have it too."""

    unit: str
    window: str
    better: str | None
    definition: str
    of_source: str


FIGURES: Mapping[str, TelemetryFigure] = {
    "energy": TelemetryFigure("J", TRAINING, LOWER, "energy: by a counter, else integrated power", "sum"),
    "avg_power": TelemetryFigure("W", TRAINING, None, "energy / time it was measured in", "sum"),
    "max_power": TelemetryFigure(
        "W", TRAINING, None, "largest sample of power", "largest sum of one moment when all were read"
    ),
    "idle_power": TelemetryFigure("W", Phase.IDLE.value, LOWER, "mean power in that phase", "sum"),
    "energy_above_idle": TelemetryFigure(
        "J", TRAINING, LOWER, "energy less idle_power x the time it was measured in", "sum"
    ),
    "utilisation": TelemetryFigure("1", TRAINING, None, "mean of the readings, 0 to 1", "mean"),
    "max_memory": TelemetryFigure("GiB", TRAINING, LOWER, "largest reading of the memory in use", "largest"),
    "avg_temperature": TelemetryFigure("°C", TRAINING, LOWER, "mean of the readings", "mean"),
    "max_temperature": TelemetryFigure("°C", TRAINING, LOWER, "largest reading", "largest"),
    "avg_clock": TelemetryFigure("MHz", TRAINING, None, "mean of the readings", "mean"),
    "throttled": TelemetryFigure(
        "1", TRAINING, LOWER, "part of the readings in which something held the device back", "mean"
    ),
}


@dataclass(frozen=True)
class Measured:
    """A number, and the part of its window that was sampled, 0 to 1. source: by what, or why there is none."""

    value: float | None
    coverage: float | None = None
    source: str = ""


@dataclass(frozen=True)
class Column:
    """A figure of each device of a source, in their order, None where it was not measured."""

    values: Annotated[tuple[float | None, ...], Field(max_length=MOST_DEVICES)]
    coverage: Annotated[tuple[float | None, ...], Field(max_length=MOST_DEVICES)]


@dataclass(frozen=True)
class PhasePower:
    """What a source's devices took in a phase, all together."""

    energy: Measured
    avg_power: Measured


@dataclass(frozen=True)
class SourceGap:
    """A time without a reading, from so many seconds after TRAIN_START on."""

    device: str
    start_s: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class SourceTelemetry:
    """What a source of a node comes to. more_devices, more_gaps: those that are left out.

    figures: of all its devices together. phases: power, phase by phase. throttled_by: reason -> the part of its
    readings for which it held each device back.
    """

    scope: Scope
    interval_s: float
    note: str = ""
    devices: Annotated[tuple[str, ...], Field(max_length=MOST_DEVICES)] = ()
    more_devices: int = 0
    figures: Mapping[str, Measured] = field(default_factory=dict)
    phases: Mapping[Phase, PhasePower] = field(default_factory=dict)
    of_devices: Mapping[str, Column] = field(default_factory=dict)
    throttled_by: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    gaps: Annotated[tuple[SourceGap, ...], Field(max_length=MOST_GAPS)] = ()
    more_gaps: int = 0


@dataclass(frozen=True, kw_only=True)
class NodeTelemetry:
    """What a node's telemetry comes to. phases: the seconds of each. missing: what there is not, and why."""

    phases: Mapping[Phase, float] = field(default_factory=dict)
    sources: Annotated[Mapping[str, SourceTelemetry], Field(max_length=MOST_SOURCES)] = field(
        default_factory=dict
    )
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reconciliation:
    """Two readings of the same power on a node, W over a window in which both were read, or how far both have risen.

    agrees: whether they do, within `tolerance` (a part of the larger one); None where nobody can tell, and
    `reason` says why, as it does for the tolerance. sources: whose figures are doubtful where they do not.
    """

    node: int
    what: str
    first: float | None
    second: float | None
    agrees: bool | None
    tolerance: float
    reason: str
    sources: Annotated[tuple[str, ...], Field(max_length=3 * MOST_SOURCES)] = ()


@dataclass(frozen=True, kw_only=True)
class RoundTelemetry:
    """What the nodes' telemetry comes to; nodes by rank, none in a run's summary. more_nodes: those left out."""

    figures: Mapping[str, TelemetryFigure] = field(default_factory=lambda: FIGURES)
    phases: Mapping[Phase, str] = field(default_factory=lambda: PHASES)
    nodes: Annotated[tuple[NodeTelemetry, ...], Field(max_length=MOST_NODES)] = ()
    more_nodes: int = 0
    reconciliation: Annotated[tuple[Reconciliation, ...], Field(max_length=MOST_COMPARED)] = ()
