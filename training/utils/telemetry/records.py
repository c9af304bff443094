"""The values of telemetry: samples, where they come from, and what is measured over a window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Literal

from utils.telemetry.series import Series, SeriesTable


class Scope(str, Enum):
    """What a source's figures speak of; two scopes are never added."""

    HOST = "host"  # the operating system's view: CPU and memory use
    MACHINE = "machine"  # the whole machine, as its power supply sees it
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
    """One reading of one device of one source. None is "not measured".

    `device` is "" for the host itself, else the source's name for the device ("0", "package-0").
    `energy_mj` is a counter that only grows, until it wraps at `energy_range_mj`; where that is None it
    does not wrap in the life of a machine. `power_on` names the device of the same source that carries the power of
    this one too, where boards of several devices tell it once. `error` says what the device answered in place of a
    value.
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
    kind: Literal["sample"] = "sample"


@dataclass(frozen=True)
class Telemetry:
    """Everything that the monitors of one node wrote, in the order written.

    lines: how many there are; wrong: how many of them are no record; first_wrong: where the first is, and why.
    columns: power and energy alone, by source and device; where they are held so, there are no `samples`.
    """

    path: str
    sources: tuple[SourceInfo, ...] = ()
    samples: tuple[Sample, ...] = ()
    lines: int = field(default=0, compare=False)
    wrong: int = 0
    first_wrong: str = ""
    columns: Mapping[str, Mapping[str, Series]] | None = field(default=None, compare=False)

    @property
    def doubt(self) -> str:
        """How much of it was left out, or nothing."""
        wrong = f"{self.wrong} of {self.lines} lines of telemetry are no record and left out"
        return f"{wrong}: {self.first_wrong}" if self.wrong else ""

    def devices(self, source: str) -> Mapping[str, list[Sample]]:
        """The samples of `source` by device (2 before 10), in time order."""
        return self._by_source.get(source, {})

    def series(self, source: str) -> Mapping[str, Series]:
        """The readings of power and energy of `source` by device (2 before 10), in time order."""
        return self._series.get(source, {})

    @cached_property
    def _series(self) -> Mapping[str, Mapping[str, Series]]:
        if self.columns is not None:
            return self.columns
        table = SeriesTable()
        for sample in self.samples:
            table.take(sample)
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
    why; beside a value it names what the reader should know (a counter that was not to be trusted).
    """

    value: float | None
    source: str
    coverage: float
    reason: str = ""
