"""The values of telemetry: samples, where they come from, and what is measured over a window."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from utils.telemetry.quantities import BY_NAME
from utils.telemetry.series import Series, SeriesTable

if TYPE_CHECKING:
    from utils.telemetry.clock_steps import ClockStep
    from utils.telemetry.series import AnyTick


# By so much of itself a measured value may be off without a word.
SURE = 0.02


class Scope(str, Enum):
    """What a source's figures speak of; two scopes are never added."""

    HOST = "host"  # the operating system's view: CPU and memory use
    TASK = "task"  # that part of it which the training's own processes use
    MACHINE = "machine"  # the whole machine, as its power supply sees it
    CHASSIS = "shared chassis"  # what several machines share: nobody can say what is whose
    PACKAGE = "cpu package"  # processor packages (and their DRAM) only
    ACCELERATOR = "accelerator"  # accelerator boards only


@dataclass(frozen=True)
class SourceInfo:
    """A source of samples, written once when its monitor starts.

    `reason` is empty where the source works, else it says why there is none. `note` says what the
    figures are and are not (which domain, averaged over how long).
    """

    time_ms: int
    source: str
    scope: Scope
    interval_s: float
    note: str = ""
    reason: str = ""
    kind: Literal["source"] = "source"


@dataclass(frozen=True)
class Sample:
    """One reading of one device of one source. None is "not measured"; `quantities` says what each number is.

    `device` is "" for the host itself, else the source's name for the device ("0", "package-0").
    `energy_mj` is a counter that only grows, until it wraps at `energy_range_mj`; where that is None it
    does not wrap in the life of a machine. `power_w` is what a source has, averaged or not, as its note says;
    `power_instant_w` stands beside one that is averaged. Bytes are counters. `power_on` names the device of the same
    source that carries the power of this one too, where boards of several devices tell it once. `throttle` names, with
    commas, why the device runs slower than it could: "" where nothing holds it back. `error` says what the device
    answered in place of a value.
    """

    time_ms: int
    source: str
    device: str = ""
    utilisation: float | None = None  # 0 to 1
    power_w: float | None = None
    energy_mj: float | None = None
    energy_range_mj: float | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    temperature_c: float | None = None
    power_on: str | None = None
    error: str = ""
    throttle: str | None = None
    power_instant_w: float | None = None
    load: float | None = None
    swap_used_mib: float | None = None
    memory_temperature_c: float | None = None
    clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    cpu_s: float | None = None
    read_bytes: float | None = None
    written_bytes: float | None = None
    received_bytes: float | None = None
    sent_bytes: float | None = None
    pcie_received_bytes_per_s: float | None = None
    pcie_sent_bytes_per_s: float | None = None
    ecc_corrected: float | None = None
    ecc_uncorrected: float | None = None
    remapped_rows: float | None = None
    nvlink_received_bytes: float | None = None
    nvlink_sent_bytes: float | None = None
    processes: float | None = None
    cpu_limited_s: float | None = None
    memory_peak_mib: float | None = None
    memory_kills: float | None = None


@dataclass(frozen=True)
class Tick:
    """What one source read of its devices at one moment, as it stands in a line of telemetry.jsonl.

    `readings`, `power_on`, `throttle` and `error` have a value a device, in their order; what no device has is absent.
    `monotonic_ms` is of a clock that nobody sets, from any beginning. The rest see `Sample`.
    """

    time_ms: int
    source: str
    devices: Sequence[str]
    readings: Mapping[str, Sequence[float | None]]
    power_on: Sequence[str | None] | None = None
    throttle: Sequence[str | None] | None = None
    error: Sequence[str] | None = None
    monotonic_ms: int | None = None
    kind: Literal["tick"] = "tick"


def ticks_of(samples: Iterable[Sample], monotonic_ms: int | None = None) -> Iterator[Tick]:
    """Samples as they come, those of one source and moment together."""
    for (time_ms, source), group in groupby(samples, lambda each: (each.time_ms, each.source)):
        rows = [vars(sample) for sample in group]
        there = {name for row in rows for name, value in row.items() if value is not None}
        readings = {name: [row[name] for row in rows] for name in BY_NAME if name in there}
        # that nothing holds a device back is told too
        power_on, throttle = (
            [row[n] for row in rows] if n in there else None for n in ("power_on", "throttle")
        )
        errors = [row["error"] for row in rows]
        yield Tick(
            time_ms,
            source,
            [row["device"] for row in rows],
            readings,
            power_on,
            throttle,
            errors if any(errors) else None,
            monotonic_ms,
        )


def samples_of(tick: AnyTick) -> Iterator[Sample]:
    """The samples that a tick holds; readings of other names than a `Sample` has are left out."""
    for place, device in enumerate(tick.devices):
        readings: dict[str, Any] = {
            name: values[place] for name, values in tick.readings.items() if name in BY_NAME
        }
        texts = {
            name: values[place]
            for name in ("power_on", "throttle", "error")
            if (values := getattr(tick, name)) is not None
        }
        yield Sample(tick.time_ms, tick.source, device, **readings, **texts)


@dataclass(frozen=True)
class Telemetry:
    """Everything that the monitors of one node wrote, in the order written.

    lines: how many there are; wrong: how many of them are no record; first_wrong: where the first is, and why.
    columns: the readings by source and device; where they are held so, there are no `samples`.
    of_controller: the sources that the controller has read itself. node_lines, node_wrong: of the node's own file.
    left_out: source -> which of its readings of power cannot be. without_power: source -> why none of them is left.
    clock_steps: where the clocks by which it is stamped were set. clock_watched_ms: from when to when the node's own
    clock was watched for that, if it was.
    """

    path: str
    sources: tuple[SourceInfo, ...] = ()
    samples: tuple[Sample, ...] = ()
    lines: int = field(default=0, compare=False)
    wrong: int = 0
    first_wrong: str = ""
    columns: Mapping[str, Mapping[str, Series]] | None = field(default=None, compare=False)
    of_controller: frozenset[str] = frozenset()
    node_lines: int = field(default=0, compare=False)
    node_wrong: int = field(default=0, compare=False)
    left_out: Mapping[str, str] = field(default_factory=dict, compare=False)
    without_power: Mapping[str, str] = field(default_factory=dict, compare=False)
    clock_steps: tuple[ClockStep, ...] = field(default=(), compare=False)
    clock_watched_ms: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def doubt(self) -> str:
        """How much of it was left out, or nothing."""
        wrong = f"{self.wrong} of {self.lines} lines of telemetry are no record and left out"
        return f"{wrong}: {self.first_wrong}" if self.wrong else ""

    def devices(self, source: str) -> Mapping[str, list[Sample]]:
        """The samples of `source` by device (2 before 10), in time order."""
        return self._by_source.get(source, {})

    def series(self, source: str) -> Mapping[str, Series]:
        """The readings of `source` by device (2 before 10), in time order."""
        return self._series.get(source, {})

    @cached_property
    def _series(self) -> Mapping[str, Mapping[str, Series]]:
        if self.columns is not None:
            return self.columns
        table = SeriesTable()
        for tick in ticks_of(self.samples):
            table.take(tick)
        return table.by_source()

    @cached_property
    def _by_source(self) -> Mapping[str, Mapping[str, list[Sample]]]:
        """Made once: a day of eight chips is a million samples."""
        sources: dict[str, dict[str, list[Sample]]] = {}
        for sample in sorted(self.samples, key=lambda sample: sample.time_ms):
            sources.setdefault(sample.source, {}).setdefault(sample.device, []).append(sample)
        return {
            source: {name: devices[name] for name in sorted(devices, key=lambda name: (len(name), name))}
            for source, devices in sources.items()
        }

    def info(self, source: str) -> SourceInfo | None:
        """The latest word on `source`, or None where the monitor never spoke of it."""
        return next((info for info in reversed(self.sources) if info.source == source), None)

    def with_scope(self, scope: Scope) -> list[str]:
        """The names of the sources of `scope` that work, by the latest word on each, in the order of the alphabet."""
        latest = {info.source: info for info in self.sources}
        return sorted(name for name, info in latest.items() if info.scope is scope and not info.reason)


@dataclass(frozen=True)
class Window:
    """A span of wall-clock time, milliseconds since the epoch; it ends after it starts."""

    start_ms: int
    end_ms: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ms - self.start_ms) / 1000


@dataclass(frozen=True)
class Measurement:
    """A figure over a window. `coverage` is the part of the window that was sampled, 0 to 1.

    A value speaks of the covered part; nothing is extrapolated. Where `value` is None, `reason` says
    why; beside a value it names what the reader should know (a counter that was not to be trusted). doubt: why the
    value may be wrong, or nothing. unsure: by so much it is if the load changed just at the window's ends, which lie
    between two readings.
    """

    value: float | None
    source: str
    coverage: float
    reason: str = ""
    doubt: str = ""
    unsure: float = 0.0

    @property
    def unsure_part(self) -> float:
        """`unsure` as a part of the value."""
        if not self.unsure or self.value is None:
            return 0.0
        return self.unsure / abs(self.value) if self.value else math.inf

    @property
    def doubt_at_ends(self) -> str:
        """That it is not sure, where that is more than a small part of it; or nothing."""
        if self.unsure_part <= SURE:
            return ""
        much = f"some {100 * self.unsure_part:.2g} %" if self.unsure_part < 1 else "as much as it is"
        return f"the load changed between the readings around an end of its window: it may be off by {much}"
