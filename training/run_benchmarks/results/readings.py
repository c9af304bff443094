"""What sources read besides power, summed up while their ticks come: of millions of readings none is kept."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from utils.telemetry.quantities import BY_NAME
from utils.telemetry.records import Window

if TYPE_CHECKING:
    from utils.telemetry.series import AnyTick

# So many are held before they are summed up.
MOST_HELD = 100_000
MOST_REASONS = 32  # for which a device, or a source's, is throttled; more are no driver's
LONGEST_REASON = 100  # characters
NAN = float("nan")
DeviceKey = tuple[str, str]  # source, device


@dataclass
class Total:
    """What readings of one quantity come to."""

    count: int = 0
    sum: float = 0.0
    greatest: float = 0.0

    @property
    def mean(self) -> float:
        """Of readings that are taken as often at all times."""
        return self.sum / self.count

    def add(self, values: Sequence[float]) -> None:
        """Take in some more."""
        if values:
            self.greatest = max(values) if not self.count else max(self.greatest, max(values))
            self.count += len(values)
            self.sum += sum(values)


@dataclass
class Throttling:
    """How often a device said whether anything held it back, how often something did, and what."""

    count: int = 0
    held_back: int = 0
    by_reason: Counter[str] = field(default_factory=Counter)

    def add(self, text: str | None, times: int) -> None:
        """Take in what stood in so many readings: reasons with commas between them, or none."""
        if text is None:
            return
        self.count += times
        reasons = {reason.strip()[:LONGEST_REASON] for reason in text.split(",") if reason.strip()}
        self.held_back += times if reasons else 0
        for reason in reasons:
            if reason in self.by_reason or len(self.by_reason) < MOST_REASONS:
                self.by_reason[reason] += times


class Readings:
    """The totals of each device's readings in a window. wanted: of which quantities."""

    def __init__(self, window: Window, wanted: Collection[str]) -> None:
        self.window, self._wanted = window, wanted
        self._held: dict[tuple[str, tuple[str, ...], str], array[float]] = {}
        self._throttle: Counter[tuple[str, tuple[str, ...], tuple[str | None, ...]]] = Counter()
        self._count = 0
        self._totals: dict[DeviceKey, dict[str, Total]] = {}
        self._throttling: dict[DeviceKey, Throttling] = {}

    def take(self, tick: AnyTick) -> None:
        """One more tick, in any order."""
        if not self.window.start_ms <= tick.time_ms <= self.window.end_ms:
            return
        devices = tuple(tick.devices)
        for name in self._wanted & tick.readings.keys():
            column = self._held.setdefault((tick.source, devices, name), array("d"))
            column.extend([NAN if value is None else value for value in tick.readings[name]])
            self._count += len(devices)
        if tick.throttle is not None:
            self._throttle[tick.source, devices, tuple(tick.throttle)] += 1
            self._count += len(devices)
        if self._count >= MOST_HELD:
            self._sum_up()

    def totals(self) -> Mapping[DeviceKey, Mapping[str, Total]]:
        """Source and device -> quantity -> what its readings come to; one that was never read is missing."""
        self._sum_up()
        return self._totals

    def throttling(self) -> Mapping[DeviceKey, Throttling]:
        """Source and device -> what held it back; a device that never said whether anything did is missing."""
        self._sum_up()
        return {key: each for key, each in self._throttling.items() if each.count}

    def _sum_up(self) -> None:
        for (source, devices, name), column in self._held.items():
            least = float("-inf") if BY_NAME[name].may_be_negative else 0.0
            for place, device in enumerate(devices):
                values = [value for value in column[place :: len(devices)] if value >= least]
                if values:
                    self._totals.setdefault((source, device), {}).setdefault(name, Total()).add(values)
        for (source, devices, texts), times in self._throttle.items():
            for device, text in zip(devices, texts, strict=True):
                self._throttling.setdefault((source, device), Throttling()).add(text, times)
        self._held.clear()
        self._throttle.clear()
        self._count = 0
