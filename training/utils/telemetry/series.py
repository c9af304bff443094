"""Readings in columns: of millions of samples there is no object for each."""

from __future__ import annotations

import math
import operator
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # monitors import this in images with old Pythons too, which cannot evaluate all of it
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import Protocol

    Point = tuple[int, float]

    class Reading(Protocol):
        """What tells whether a device's power is read of itself."""

        @property
        def power_w(self) -> float | None: ...
        @property
        def energy_mj(self) -> float | None: ...
        @property
        def power_on(self) -> str | None: ...

    class AnyTick(Protocol):
        """A `records.Tick`, or a line that is one."""

        @property
        def time_ms(self) -> int: ...
        @property
        def source(self) -> str: ...
        @property
        def devices(self) -> Sequence[str]: ...
        @property
        def readings(self) -> Mapping[str, Sequence[float | None]]: ...
        @property
        def power_on(self) -> Sequence[str | None] | None: ...
        @property
        def throttle(self) -> Sequence[str | None] | None: ...
        @property
        def error(self) -> Sequence[str] | None: ...


POWER, ENERGY, ENERGY_RANGE = "power_w", "energy_mj", "energy_range_mj"


def carrier_of(sample: Reading) -> str | None:
    """Who carries the device's power, by this sample alone; None where it is read of the device itself."""
    is_read = any(value is not None and value >= 0 for value in (sample.power_w, sample.energy_mj))
    return None if is_read else sample.power_on


@dataclass(frozen=True)
class Series:
    """One device's readings in time order: a column a quantity that was read at all, NaN where it was not.

    power_on, error: the latest that was told, if there is one.
    """

    times_ms: array[int]
    columns: Mapping[str, array[float]]
    power_on: str | None
    error: str

    def column(self, name: str) -> array[float]:
        """The readings of a quantity, as many as there are times."""
        return self.columns.get(name) or array("d", [math.nan]) * len(self.times_ms)

    def points(self, name: str) -> Iterator[Point]:
        """The readings of a quantity; one below 0 is a tool's way to say that it has none."""
        column = self.columns.get(name, ())
        return ((time_ms, value) for time_ms, value in zip(self.times_ms, column) if value >= 0)  # noqa: B905

    def has_read(self, name: str) -> bool:
        """Whether there is any reading of a quantity."""
        return any(value >= 0 for value in self.columns.get(name, ()))

    def read_from_to(self, names: Sequence[str]) -> tuple[int, int] | None:
        """When any of these quantities was read for the first time and for the last; None where none ever was."""
        columns = [self.columns[name] for name in names if name in self.columns]
        rows = zip(self.times_ms, *columns)  # noqa: B905
        back = zip(reversed(self.times_ms), *map(reversed, columns))  # noqa: B905
        first, last = (
            next((time_ms for time_ms, *values in each if any(value >= 0 for value in values)), None)
            for each in (rows, back)
        )
        return None if first is None or last is None else (first, last)

    def between(self, start_ms: float, end_ms: float, around_ms: float = 0.0) -> Series:
        """The readings from one time to another, both included; and of those within `around_ms` of these the next few.

        They are few, however seldom a source says that it is read: of a training there are thousands of windows.
        """
        first, last = bisect_left(self.times_ms, start_ms), bisect_right(self.times_ms, end_ms)
        first = max(bisect_left(self.times_ms, start_ms - around_ms), first - FEW)
        last = min(bisect_right(self.times_ms, end_ms + around_ms), last + FEW)
        if (first, last) == (0, len(self.times_ms)):
            return self
        columns = {name: column[first:last] for name, column in self.columns.items()}
        if ENERGY_RANGE in columns:  # the last word on it may stand elsewhere
            columns[ENERGY_RANGE] = array("d", [self.energy_range_mj or math.nan]) * (last - first)
        return Series(self.times_ms[first:last], columns, self.power_on, self.error)

    @cached_property
    def energy_range_mj(self) -> float | None:
        """Where the counter of energy wraps, by the last word on it; None where it does not."""
        return next((value for value in reversed(self.column(ENERGY_RANGE)) if value > 0), None)

    @property
    def carrier(self) -> str | None:
        """Who carries the device's power, by its last word; None where it was ever read of the device itself."""
        return None if self.has_read(POWER) or self.has_read(ENERGY) else self.power_on


FEW = 16  # the nearest one that has the value is among them, unless it was missing for long
# Of 64 devices ten times a second for ten hours: power, energy and where its counter wraps.
MOST_VALUES = 80_000_000


class SeriesTable:
    """Takes ticks as they come, in any order, until it is full.

    wanted: the quantities that are kept; None for all. most: so many values fill it.
    """

    def __init__(self, wanted: Collection[str] | None = None, most: int = MOST_VALUES) -> None:
        self.is_full, self._most = False, most
        self._wanted = wanted
        self._sizes: dict[str, _Size] = {}
        self._values = 0
        self._blocks: dict[tuple[str, tuple[str, ...]], _Block] = {}
        self._words: dict[tuple[str, str], _Words] = {}

    def take(self, tick: AnyTick) -> None:
        """One more; it is left out where the table is full."""
        self.is_full = self.is_full or self._values >= self._most
        if self.is_full:
            return
        key = (tick.source, tuple(tick.devices))
        if key not in self._blocks:
            self._blocks[key] = _Block(len(key[1]))
            for device in key[1]:
                self._words.setdefault((tick.source, device), _Words())
        self._blocks[key].take(tick, self._wanted)
        self._values += self._sizes.setdefault(tick.source, _Size()).grown_by(tick, self._wanted)
        for name in ("power_on", "error"):
            for device, text in zip(tick.devices, getattr(tick, name) or ()):  # noqa: B905
                self._words[tick.source, device].take(name, tick.time_ms, text)

    def by_source(self) -> Mapping[str, Mapping[str, Series]]:
        """Source -> device (2 before 10) -> its series."""
        places: dict[str, dict[str, list[tuple[_Block, int]]]] = {}
        for (source, devices), block in self._blocks.items():
            for place, device in enumerate(devices):
                places.setdefault(source, {}).setdefault(device, []).append((block, place))
        return {
            source: {
                name: _series(devices[name], self._words[source, name])
                for name in sorted(devices, key=lambda name: (len(name), name))
            }
            for source, devices in places.items()
        }


@dataclass
class _Words:
    """What a device told in words: of each kind the latest, with its time."""

    latest: dict[str, tuple[int, str]] = field(default_factory=dict)

    def take(self, name: str, time_ms: int, text: str | None) -> None:
        if text and time_ms >= self.latest.get(name, (0, ""))[0]:
            self.latest[name] = (time_ms, text)


@dataclass
class _Size:
    """How many values a source's series will hold: each device has every quantity of the source at each moment."""

    moments: int = 0
    names: set[str] = field(default_factory=set)

    def grown_by(self, tick: AnyTick, wanted: Collection[str] | None) -> int:
        """By how many there are more with this tick; one that reads nothing has its time still."""
        before = self.moments * max(1, len(self.names))
        self.moments += len(tick.devices)
        self.names.update(tick.readings if wanted is None else filter(wanted.__contains__, tick.readings))
        return self.moments * max(1, len(self.names)) - before


class _Block:
    """The ticks that tell of the same devices: of each quantity a tick's readings behind those of the one before."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.times_ms = array("q")
        self.columns: dict[str, array[float]] = {}

    def take(self, tick: AnyTick, wanted: Collection[str] | None) -> None:
        """One more."""
        rows = len(self.times_ms)
        self.times_ms.append(tick.time_ms)
        for name, values in tick.readings.items():
            if wanted is None or name in wanted:
                column = self._filled(name, rows)
                column.extend([math.nan if value is None else value for value in values])

    def _filled(self, name: str, rows: int) -> array[float]:
        """The column of a quantity, with NaN for the ticks that did not have it."""
        column = self.columns.setdefault(name, array("d"))
        missing = rows * self.width - len(column)
        if missing:
            column.extend(array("d", [math.nan]) * missing)
        return column

    def of_device(self, name: str, place: int) -> array[float]:
        """The readings of the device at a place."""
        return self._filled(name, len(self.times_ms))[place :: self.width]


def _series(places: Sequence[tuple[_Block, int]], words: _Words) -> Series:
    """The device that stands at these places of the blocks."""
    names = dict.fromkeys(name for block, _ in places for name in block.columns)
    times, columns = array("q"), {name: array("d") for name in names}
    for block, place in places:
        for name, column in columns.items():
            own = name in block.columns
            column.extend(
                block.of_device(name, place) if own else array("d", [math.nan]) * len(block.times_ms)
            )
        times.extend(block.times_ms)
    if any(map(operator.lt, islice(times, 1, None), times)):
        order = array("q", sorted(range(len(times)), key=times.__getitem__))
        times = array("q", map(times.__getitem__, order))
        columns = {name: array("d", map(column.__getitem__, order)) for name, column in columns.items()}
    power_on, error = (words.latest.get(name, (0, ""))[1] for name in ("power_on", "error"))
    return Series(times, columns, power_on or None, error)
