"""What the monitors of a round's nodes have read last, as far as it is of now; bounded, for nodes are strangers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from run_benchmarks.display.power_meter import MOST_SOURCES, Power, PowerMeter
from run_benchmarks.display.progress import POWER_KEPT_S
from utils.telemetry.records import Sample, SourceInfo, samples_of

if TYPE_CHECKING:
    from utils.telemetry.series import AnyTick

MOST_DEVICES = 64  # of a source of a node: a name more is a series more
# A reading counts as of now for so many intervals of its source, and for POWER_KEPT_S at least.
KEPT_INTERVALS = 3
# Hundreds of series a node, of which the source `cpu` has the mean; they stand in telemetry.jsonl.
NOT_EXPORTED = frozenset({"cores"})


@dataclass
class _Latest:
    """The newest tick of a source, and when it came in (monotonic, s); device -> its label, of those that are shown."""

    tick: AnyTick
    came_at: float
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceState:
    """A source of a node. `read_ms`: when it was last read, by the node's clock; None where it never was.

    samples: by the label of their device, empty where the last ones are not of now. left_out: devices beyond the bound.
    """

    info: SourceInfo
    read_ms: int | None = None
    samples: Mapping[str, Sample] = field(default_factory=dict)
    left_out: int = 0

    @property
    def is_up(self) -> bool:
        """Whether it works, and has been read of late."""
        return not self.info.reason and bool(self.samples)


class LatestReadings:
    """The sources of one node.

    Args:
        label: makes a label of a name that a node gave.
    """

    def __init__(self, label: Callable[[str], str]) -> None:
        self._label = label
        self._sources: dict[str, SourceInfo] = {}
        self._latest: dict[str, _Latest] = {}
        self._meter = PowerMeter()
        self._power: tuple[float, Power] | None = None

    def take(self, record: AnyTick | SourceInfo) -> None:
        """One more record of the node's monitor."""
        now, power = time.monotonic(), self._meter.take(record)
        if power is not None:
            self._power = now, power
        if isinstance(record, SourceInfo):
            is_new = record.source not in self._sources
            if record.source not in NOT_EXPORTED and not (is_new and len(self._sources) >= MOST_SOURCES):
                self._sources[record.source] = record
        elif record.source in self._sources:
            labels = self._latest[record.source].labels if record.source in self._latest else {}
            for device in record.devices:
                if device not in labels and len(labels) < MOST_DEVICES:
                    labels[device] = self._label(device)
            self._latest[record.source] = _Latest(record, now, labels)

    def power(self) -> Power | None:
        """What the node draws, by the source that the figures will use."""
        is_of_now = self._power is not None and time.monotonic() - self._power[0] <= POWER_KEPT_S
        return self._power[1] if self._power and is_of_now else None

    def sources(self) -> dict[str, SourceState]:
        """All sources by their labels."""
        return {self._label(info.source): self._state(info) for info in tuple(self._sources.values())}

    def _state(self, info: SourceInfo) -> SourceState:
        latest = self._latest.get(info.source)
        if latest is None:
            return SourceState(info)
        kept_s = max(POWER_KEPT_S, KEPT_INTERVALS * info.interval_s)
        if info.reason or time.monotonic() - latest.came_at > kept_s:
            return SourceState(info, latest.tick.time_ms)
        shown = {
            latest.labels[sample.device]: sample
            for sample in samples_of(latest.tick)
            if sample.device in latest.labels
        }
        return SourceState(info, latest.tick.time_ms, shown, len(latest.tick.devices) - len(shown))
