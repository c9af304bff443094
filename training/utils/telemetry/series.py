"""The readings of power and energy in columns: of millions of samples there is no object for each."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # monitors import this in images with old Pythons too, which cannot evaluate all of it
    from collections.abc import Iterator, Mapping
    from typing import Protocol

    Point = tuple[int, float]

    class Reading(Protocol):
        """What a `Sample`, or a line of one, tells of power and energy."""

        @property
        def time_ms(self) -> int: ...
        @property
        def source(self) -> str: ...
        @property
        def device(self) -> str: ...
        @property
        def power_w(self) -> float | None: ...
        @property
        def energy_mj(self) -> float | None: ...
        @property
        def energy_range_mj(self) -> float | None: ...
        @property
        def power_on(self) -> str | None: ...
        @property
        def error(self) -> str: ...


def carrier_of(sample: Reading) -> str | None:
    """Who carries the device's power, by this sample alone; None where it is read of the device itself."""
    is_read = any(value is not None and value >= 0 for value in (sample.power_w, sample.energy_mj))
    return None if is_read else sample.power_on


@dataclass(frozen=True)
class Series:
    """One device's readings in time order; what was not read is NaN.

    energy_range_mj, power_on, error: the latest that was told, if there is one.
    """

    times_ms: array[int]
    power_w: array[float]
    energy_mj: array[float]
    energy_range_mj: float | None
    power_on: str | None
    error: str

    def points(self, column: array[float]) -> Iterator[Point]:
        """The readings in one of the columns; one below 0 is a tool's way to say that it has none."""
        return ((time_ms, value) for time_ms, value in zip(self.times_ms, column) if value >= 0)  # noqa: B905

    def has_read(self, column: array[float]) -> bool:
        """Whether there is any reading in one of the columns."""
        return any(value >= 0 for value in column)

    @property
    def carrier(self) -> str | None:
        """Who carries the device's power, by its last word; None where it was ever read of the device itself."""
        return None if self.has_read(self.power_w) or self.has_read(self.energy_mj) else self.power_on


class SeriesTable:
    """Takes samples as they come, in any order."""

    def __init__(self) -> None:
        self._devices: dict[str, dict[str, _Device]] = {}

    def take(self, sample: Reading) -> None:
        """One more."""
        devices = self._devices.setdefault(sample.source, {})
        if sample.device not in devices:
            devices[sample.device] = _Device()
        devices[sample.device].take(sample)

    def by_source(self) -> Mapping[str, Mapping[str, Series]]:
        """Source -> device (2 before 10) -> its series."""
        return {
            source: {
                name: devices[name].series() for name in sorted(devices, key=lambda name: (len(name), name))
            }
            for source, devices in self._devices.items()
        }


class _Device:
    """One device's columns while they grow; of what changes rarely the latest word, with its time."""

    def __init__(self) -> None:
        self._times, self._power, self._energy = array("q"), array("d"), array("d")
        self._range: tuple[int, float | None] = (0, None)
        self._carrier: tuple[int, str | None] = (0, None)
        self._error = (0, "")
        self._is_sorted = True

    def take(self, sample: Reading) -> None:
        time_ms = sample.time_ms
        self._is_sorted = self._is_sorted and not (self._times and time_ms < self._times[-1])
        self._times.append(time_ms)
        self._power.append(math.nan if sample.power_w is None else sample.power_w)
        self._energy.append(math.nan if sample.energy_mj is None else sample.energy_mj)
        if sample.energy_range_mj and time_ms >= self._range[0]:
            self._range = (time_ms, sample.energy_range_mj)
        if sample.power_on is not None and time_ms >= self._carrier[0]:
            self._carrier = (time_ms, sample.power_on)
        if sample.error and time_ms >= self._error[0]:
            self._error = (time_ms, sample.error)

    def series(self) -> Series:
        times, power, energy = self._times, self._power, self._energy
        if not self._is_sorted:
            order = array("q", sorted(range(len(times)), key=times.__getitem__))
            times = array("q", map(times.__getitem__, order))
            power, energy = (array("d", map(column.__getitem__, order)) for column in (power, energy))
        return Series(times, power, energy, self._range[1], self._carrier[1], self._error[1])
