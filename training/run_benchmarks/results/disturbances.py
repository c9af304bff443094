"""What may have disturbed a training: a warning each, with the value, the limit and why that is the limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from run_benchmarks.results.cpu_load import CpuLoad, cpu_load
from run_benchmarks.results.node_readings import NodeReadings
from run_benchmarks.results.readings import DeviceKey, Total
from run_benchmarks.results.telemetry_result import NodeTelemetry, SourceTelemetry
from run_benchmarks.results.trend import lasting_change
from utils.numbers import shown
from utils.telemetry.records import Scope

MOST_DISTURBANCES = 64
# What a chip is set to, or sold as: at its rated power it is as fast as it should be.
AS_CHOSEN = frozenset({"sw_power_cap", "applications_clocks_setting", "display_clock_setting", "sync_boost"})
BUSY = 0.5  # utilisation: the clock of a chip with less to do falls by itself


class Kind(str, Enum):
    """What disturbs."""

    THROTTLED = "throttled"
    CLOCK_DROP = "clock_drop"
    FOREIGN_PROCESS = "foreign_process"
    FOREIGN_LOAD = "foreign_load"
    UNSTEADY = "unsteady"
    MEMORY_ERRORS = "memory_errors"
    REMAPPED_ROWS = "remapped_rows"
    UNWATCHED = "unwatched"


@dataclass(frozen=True)
class Limit:
    """What is a disturbance from this value on, and why."""

    value: float
    reason: str


LIMITS: Mapping[Kind, Limit] = {
    Kind.THROTTLED: Limit(0.01, "a chip that is cooled and fed well is never held back for that"),
    Kind.CLOCK_DROP: Limit(0.1, "chips of one kind under one load differ by a few percent"),
    Kind.FOREIGN_PROCESS: Limit(1, "a rank is one process on its device"),
    Kind.FOREIGN_LOAD: Limit(0.1, "engine, monitor and the kernel's network take some percent"),
    Kind.UNSTEADY: Limit(0.05, "once warm, a training keeps its pace within a percent or two"),
    Kind.MEMORY_ERRORS: Limit(1, "what was computed may be wrong"),
    Kind.REMAPPED_ROWS: Limit(1, "its memory fails"),
    Kind.UNWATCHED: Limit(0.9, "of what was not sampled nobody can say that nothing disturbed it"),
}


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """One of them: at which node (its rank) and device of which source, None and empty where it is the training's.

    value, limit: of its kind. what: it, in words.
    """

    kind: Kind
    node: int | None = None
    source: str = ""
    device: str = ""
    value: float
    limit: float
    what: str

    def note(self, hosts: Sequence[str]) -> str:
        """It, in a line."""
        host = f" on {hosts[self.node]}" if self.node is not None and self.node < len(hosts) else ""
        device = f" {self.source} {self.device}" if self.device else ""
        return f"disturbed ({self.kind.value}){host}{device}: {self.what}; {LIMITS[self.kind].reason}"


def disturbances_of_node(rank: int, node: NodeTelemetry, readings: NodeReadings) -> list[Disturbance]:
    """What a node's own telemetry tells of, as far as it is beyond its limit."""
    each = [*_throttled(rank, node), *_own_clock(rank, readings), *_processes(rank, readings)]
    return [*each, *_memory(rank, readings), *_load(rank, node, readings)][:MOST_DISTURBANCES]


def disturbances_of_all(
    nodes: Sequence[NodeTelemetry], rates: Sequence[tuple[float, float]]
) -> list[Disturbance]:
    """What shows where nodes are compared, and in the training's pace.

    Args:
        nodes: by rank.
        rates: time in ms and samples/s, as global rank 0 told them.
    """
    return [*_unsteady(rates), *_peers(nodes)][:MOST_DISTURBANCES]


def disturbance(
    kind: Kind, value: float, what: str, node: int | None = None, key: DeviceKey = ("", "")
) -> Disturbance:
    """One of a node and device, with its limit said in words."""
    source, device = key
    limit = LIMITS[kind].value
    what += f", named from {limit:.0%} on" if limit < 1 and kind is not Kind.UNWATCHED else ""
    return Disturbance(
        kind=kind, node=node, source=source, device=device, value=value, limit=limit, what=what
    )


def _accelerators(node: NodeTelemetry) -> Iterator[tuple[str, SourceTelemetry]]:
    return ((name, each) for name, each in node.sources.items() if each.scope is Scope.ACCELERATOR)


def _throttled(rank: int, node: NodeTelemetry) -> Iterator[Disturbance]:
    """By each reason that nobody has chosen."""
    for name, source in _accelerators(node):
        for reason in sorted(source.throttled_by.keys() - AS_CHOSEN):
            for device, share in zip(source.devices, source.throttled_by[reason], strict=False):
                if share is not None and share >= LIMITS[Kind.THROTTLED].value:
                    what = f"{reason} held it back in {share:.1%} of the readings"
                    yield disturbance(Kind.THROTTLED, share, what, rank, (name, device))


def _peers(nodes: Sequence[NodeTelemetry]) -> Iterator[Disturbance]:
    """Devices whose mean clock is below that of all of the same source."""
    clocks: dict[str, dict[tuple[int, str], float]] = {}
    for rank, node in enumerate(nodes):
        for name, source in _accelerators(node):
            use = source.of_devices.get("utilisation")
            clock = source.of_devices.get("avg_clock")
            for place, device in enumerate(source.devices if clock else ()):
                mhz = clock.values[place] if clock else None
                busy = use.values[place] if use else None
                if mhz is not None and (busy is None or busy >= BUSY):
                    clocks.setdefault(name, {})[rank, device] = mhz
    for name, of_source in clocks.items():
        middle = median(of_source.values())
        for (rank, device), mhz in of_source.items():
            yield from _drop(rank, (name, device), mhz, middle, f"the median of {len(of_source)} devices")


def _own_clock(rank: int, readings: NodeReadings) -> Iterator[Disturbance]:
    """Devices whose clock in the last quarter of the training is below that in the second."""
    early, late = readings.early.totals(), readings.late.totals()
    for key in sorted(early.keys() & late.keys()):
        before, after = (each[key].get("clock_mhz") for each in (early, late))
        if before and after and readings.is_accelerator(key[0]) and _busy(early[key]) and _busy(late[key]):
            yield from _drop(
                rank, key, after.mean, before.mean, "its mean in the second quarter of the training"
            )


def _busy(totals: Mapping[str, Total]) -> bool:
    use = totals.get("utilisation")
    return use is None or use.mean >= BUSY


def _drop(rank: int, key: DeviceKey, mhz: float, usual: float, whose: str) -> Iterator[Disturbance]:
    drop = 1 - mhz / usual if usual else 0.0
    if drop >= LIMITS[Kind.CLOCK_DROP].value:
        what = f"its clock was {mhz:.0f} MHz, {drop:.0%} below {whose}, {usual:.0f} MHz"
        yield disturbance(Kind.CLOCK_DROP, drop, what, rank, key)


def _processes(rank: int, readings: NodeReadings) -> Iterator[Disturbance]:
    """Those on a device before the ranks were started, and those beside its rank."""
    spans = {"before the ranks were started": (readings.before, 0), "while training": (readings.training, 1)}
    for when, (span, own) in spans.items():
        for key, totals in sorted(span.totals().items()):
            most = totals["processes"].greatest if "processes" in totals else 0
            if most - own >= LIMITS[Kind.FOREIGN_PROCESS].value:
                what = f"{most:.0f} processes were on it {when}, of which the training's are {own}"
                yield disturbance(Kind.FOREIGN_PROCESS, most - own, what, rank, key)


def _memory(rank: int, readings: NodeReadings) -> Iterator[Disturbance]:
    kinds = {
        "ecc_uncorrected": (Kind.MEMORY_ERRORS, "uncorrected memory errors"),
        "remapped_rows": (Kind.REMAPPED_ROWS, "rows of its memory were remapped"),
    }
    for (source, device, name), growth in sorted(readings.counters.growths().items()):
        if name in kinds and growth.amount >= LIMITS[kinds[name][0]].value:
            kind, what = kinds[name]
            yield disturbance(
                kind, growth.amount, f"{growth.amount:.0f} {what} while training", rank, (source, device)
            )


def _load(rank: int, node: NodeTelemetry, readings: NodeReadings) -> Iterator[Disturbance]:
    """What the host's CPUs did beyond the training's own control group."""
    load = cpu_load(node, readings)
    if isinstance(load, CpuLoad) and load.foreign >= LIMITS[Kind.FOREIGN_LOAD].value:
        what = (
            f"others than the training used {shown(load.foreign * load.cpus, 3)} of its {load.cpus} CPUs "
            f"({load.foreign:.0%}; all were busy for {load.busy:.0%}, the training's control group for {load.own:.0%})"
        )
        yield disturbance(Kind.FOREIGN_LOAD, load.foreign, what, rank)


def _unsteady(rates: Sequence[tuple[float, float]]) -> Iterator[Disturbance]:
    """A warm-up that does not end, or a training that grows slower."""
    change = lasting_change(rates)
    if change is not None and abs(change) >= LIMITS[Kind.UNSTEADY].value:
        way = "rose" if change > 0 else "fell"
        what = f"throughput {way} by {abs(change):.1%} in the second half of the training"
        yield disturbance(Kind.UNSTEADY, abs(change), what)
