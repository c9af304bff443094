"""One node's telemetry, cut by the training's phases: what each of its sources and their devices come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from run_benchmarks.results.energy import DeviceEnergy, device_energies, energy_and_power, max_power, powers
from run_benchmarks.results.gaps import gaps_in
from run_benchmarks.results.idle import idle_window
from run_benchmarks.results.phases import Phase
from run_benchmarks.results.readings import MOST_REASONS, Readings, Total
from run_benchmarks.results.telemetry_result import (
    MOST_DEVICES,
    MOST_GAPS,
    MOST_SOURCES,
    Column,
    Measured,
    NodeTelemetry,
    PhasePower,
    SourceGap,
    SourceTelemetry,
)
from utils.figures import LEAST_COVERAGE
from utils.numbers import difference
from utils.telemetry.power_sources import WITH_POWER, interval_ms
from utils.telemetry.records import Measurement, SourceInfo, Telemetry, Window
from utils.text_files import shortened_to_words

GIB_PER_MIB = 1 / 1024
# Phases and what lies between them, times devices, that are told apart: 1,500 evaluations with 64 devices have as many.
MOST_PARTS = 200_000
LONGEST_NOTE = 400  # characters
# Figure -> the quantity that it is of, and what of its total.
READ: Mapping[str, tuple[str, Callable[[Total], float]]] = {
    "utilisation": ("utilisation", lambda total: total.mean),
    "max_memory": ("memory_used_mib", lambda total: total.greatest * GIB_PER_MIB),
    "avg_temperature": ("temperature_c", lambda total: total.mean),
    "max_temperature": ("temperature_c", lambda total: total.greatest),
    "avg_clock": ("clock_mhz", lambda total: total.mean),
}
LARGEST = frozenset({"max_memory", "max_temperature"})  # of the devices stands for their source
WANTED = frozenset(quantity for quantity, _ in READ.values())


@dataclass(frozen=True)
class Cut:
    """By what a node's readings are cut, on the round's time line.

    training: the round's TRAIN_START to TRAIN_END. target_ms: when an evaluation met the target, if one did.
    phases: the node's own. ranks_start_ms: of its first rank, None where nothing tells. unclear: why the phases of the
    training cannot be told apart, or nothing.
    """

    training: Window
    target_ms: int | None = None
    phases: Mapping[Phase, Sequence[Window]] = field(default_factory=dict)
    ranks_start_ms: float | None = None
    unclear: str = ""


def node_telemetry(telemetry: Telemetry, readings: Readings, cut: Cut) -> NodeTelemetry:
    """What the sources come to that tell of power, of accelerators or of the host as a whole."""
    idle = idle_window(telemetry, cut.ranks_start_ms)
    phases = dict(cut.phases)
    missing = [f"phases: {cut.unclear}"] if cut.unclear else []
    if isinstance(idle, Window):
        phases = {Phase.IDLE: [idle], **phases}
    else:
        missing.append(f"{Phase.IDLE.value}: {idle}")
    latest = {info.source: info for info in telemetry.sources}
    missing += [f"{info.source}: {info.reason}" for info in latest.values() if info.reason]
    sources = {
        info.source: _source(telemetry, readings, info, cut.training, phases)
        for info in islice(_of_interest(latest, readings), MOST_SOURCES)
    }
    missing += [
        f"{name}: it has too many devices for phases in so many parts"
        for name in sources
        if _are_too_many(telemetry, name, phases)
    ]
    seconds = {phase: sum(each.seconds for each in windows) for phase, windows in phases.items()}
    notes = (shortened_to_words(text, LONGEST_NOTE) for text in missing[:MOST_SOURCES])
    return NodeTelemetry(phases=seconds, sources=sources, missing=tuple(notes))


def _of_interest(sources: Mapping[str, SourceInfo], readings: Readings) -> Iterator[SourceInfo]:
    """Sources that work; of the host's own those that tell of it as a whole, not of single CPUs and sensors."""
    whole = {source for source, device in readings.totals() if not device}
    for name, info in sorted(sources.items()):
        if not info.reason and (info.scope in WITH_POWER or name in whole):
            yield info


def _source(
    telemetry: Telemetry,
    readings: Readings,
    info: SourceInfo,
    training: Window,
    phases: Mapping[Phase, Sequence[Window]],
) -> SourceTelemetry:
    of_readings = [device for source, device in readings.totals() if source == info.source]
    names = sorted({*telemetry.series(info.source), *of_readings}, key=lambda name: (len(name), name))
    devices = names[:MOST_DEVICES]
    expected = expected_readings(training, interval_ms(telemetry, info.source))
    columns = dict(_read_columns(readings, info.source, devices, expected))
    figures = {name: _of_all(name, column) for name, column in columns.items()}
    power = {}
    if info.scope in WITH_POWER:
        if _are_too_many(telemetry, info.source, phases):
            phases = {Phase.IDLE: phases[Phase.IDLE]} if Phase.IDLE in phases else {}
        energies = device_energies(telemetry, (training,), info.source)
        power = {phase: _power(telemetry, windows, info.source) for phase, windows in phases.items()}
        windows = phases.get(Phase.IDLE, ())
        idle = device_energies(telemetry, windows, info.source) if windows else {}
        idle_ms = sum(each.seconds for each in windows) * 1000
        of_power = _power_columns(telemetry, training, info.source, devices, energies, idle, idle_ms)
        columns = {**of_power, **columns}
        figures = {**_power_figures(telemetry, training, info.source, energies, power), **figures}
    gaps = list(islice(gaps_in(telemetry, training, info.source), 100 * MOST_GAPS))
    named = sorted(gaps, key=lambda gap: -gap.seconds)[:MOST_GAPS]
    return SourceTelemetry(
        scope=info.scope,
        interval_s=info.interval_s,
        note=shortened_to_words(info.note, LONGEST_NOTE),
        devices=tuple(devices),
        more_devices=len(names) - len(devices),
        figures=figures,
        phases=power,
        of_devices=_read_at_all(columns) if devices != [""] else {},
        throttled_by=_throttled_by(readings, info.source, devices),
        gaps=tuple(
            SourceGap(gap.device, (gap.start_ms - training.start_ms) / 1000, gap.seconds)
            for gap in sorted(named, key=lambda gap: (gap.start_ms, gap.device))
        ),
        more_gaps=len(gaps) - len(named),
    )


def _are_too_many(telemetry: Telemetry, source: str, phases: Mapping[Phase, Sequence[Window]]) -> bool:
    return len(telemetry.series(source)) * sum(map(len, phases.values())) > MOST_PARTS


def _read_at_all(columns: Mapping[str, Column]) -> dict[str, Column]:
    return {
        name: column for name, column in columns.items() if any(value is not None for value in column.values)
    }


# ---- power


def measured(each: Measurement) -> Measured:
    """As it stands below its source: the method, or why there is no value."""
    text = each.reason or each.source.rpartition(": ")[2]
    text = "; ".join(filter(None, (each.doubt_at_ends, text)))  # what is long is cut at its end
    return Measured(each.value, each.coverage, shortened_to_words(text, LONGEST_NOTE))


def _power(telemetry: Telemetry, windows: Sequence[Window], source: str) -> PhasePower:
    energies = device_energies(telemetry, windows, source)
    energy, power = energy_and_power(telemetry, windows, source, energies)
    return PhasePower(measured(energy), measured(power))


def _power_figures(
    telemetry: Telemetry,
    training: Window,
    source: str,
    energies: Mapping[str, DeviceEnergy],
    phases: Mapping[Phase, PhasePower],
) -> dict[str, Measured]:
    energy, power = energy_and_power(telemetry, (training,), source, energies)
    idle = phases[Phase.IDLE].avg_power if Phase.IDLE in phases else Measured(None, None, "no idle phase")
    idle = idle if (idle.coverage or 0) >= LEAST_COVERAGE else Measured(None, idle.coverage, idle.source)
    above = energy_above_idle(energy, power, idle.value)
    return {
        "energy": measured(energy),
        "avg_power": measured(power),
        "max_power": measured(max_power(telemetry, training, source)),
        "idle_power": idle,
        "energy_above_idle": Measured(
            above, energy.coverage, "energy, idle_power" if above is not None else idle.source
        ),
    }


def energy_above_idle(energy: Measurement, power: Measurement, idle_w: float | None) -> float | None:
    """Energy in J beyond what the idle node would have taken in the time that was measured."""
    if energy.value is None or not power.value or idle_w is None:
        return None
    return difference(energy.value, idle_w * energy.value / power.value)


def _power_columns(
    telemetry: Telemetry,
    training: Window,
    source: str,
    devices: Sequence[str],
    energies: Mapping[str, DeviceEnergy],
    idle: Mapping[str, DeviceEnergy],
    idle_ms: float,
) -> dict[str, Column]:
    covered = {name: each.covered_ms / (training.seconds * 1000) for name, each in energies.items()}
    idle_covered = {name: each.covered_ms / idle_ms for name, each in idle.items()}
    idle_watts = {
        name: _watts(each) if idle_covered[name] >= LEAST_COVERAGE else None for name, each in idle.items()
    }
    largest = {
        name: max(
            (watts for at, watts in read.items() if training.start_ms <= at <= training.end_ms), default=None
        )
        for name, read in powers(telemetry, source)
    }
    values: dict[str, Mapping[str, float | None]] = {
        "energy": {name: each.value for name, each in energies.items()},
        "avg_power": {name: _watts(each) for name, each in energies.items()},
        "max_power": largest,
        "idle_power": idle_watts,
        "energy_above_idle": {name: _above(each, idle_watts.get(name)) for name, each in energies.items()},
    }
    return {
        name: Column(
            tuple(of_figure.get(device) for device in devices),
            tuple((idle_covered if name == "idle_power" else covered).get(device) for device in devices),
        )
        for name, of_figure in values.items()
    }


def _above(energy: DeviceEnergy, idle_w: float | None) -> float | None:
    if energy.value is None or idle_w is None:
        return None
    return difference(energy.value, idle_w * energy.covered_ms / 1000)


def _watts(energy: DeviceEnergy) -> float | None:
    return None if energy.value is None else energy.value / (energy.covered_ms / 1000)


# ---- other readings


def expected_readings(window: Window, interval: float) -> int:
    """The fewest readings, `interval` ms apart, of which none was missed, wherever the window begins.

    One that comes half an interval after its time is not late yet, but may lie beyond the window's end.
    """
    return max(1, int(window.seconds * 1000 / max(1.0, interval) - 0.5))


def _read_columns(
    readings: Readings, source: str, devices: Sequence[str], expected: int
) -> Iterator[tuple[str, Column]]:
    """expected: so many readings a device would have if none was missed."""
    totals = readings.totals()
    for name, (quantity, of) in READ.items():
        read = [totals.get((source, device), {}).get(quantity) for device in devices]
        if any(read):
            values = (None if total is None else of(total) for total in read)
            coverage = (None if total is None else min(1.0, total.count / expected) for total in read)
            yield name, Column(tuple(values), tuple(coverage))
    throttling = readings.throttling()
    held = [throttling.get((source, device)) for device in devices]
    if any(held):
        coverage = (None if each is None else min(1.0, each.count / expected) for each in held)
        shares = (None if each is None else each.held_back / each.count for each in held)
        yield "throttled", Column(tuple(shares), tuple(coverage))


def _throttled_by(
    readings: Readings, source: str, devices: Sequence[str]
) -> dict[str, tuple[float | None, ...]]:
    throttling = readings.throttling()
    held = [throttling.get((source, device)) for device in devices]
    counts = sum((each.by_reason for each in held if each), Counter[str]())
    return {
        reason: tuple(None if each is None else each.by_reason[reason] / each.count for each in held)
        for reason, _ in sorted(counts.most_common(MOST_REASONS))
    }


def _of_all(name: str, column: Column) -> Measured:
    """The devices' mean, or their largest; what was not read of one is not in it."""
    values = [value for value in column.values if value is not None]
    coverage = min((each for each in column.coverage if each is not None), default=None)
    missing = len(column.values) - len(values)
    source = f"{len(values)} of {len(column.values)} devices" if missing else ""
    value = max(values) if name in LARGEST else sum(values) / len(values)
    return Measured(value, coverage, source)
