"""Counters of energy: by how much they grew, and where they cannot be believed.

A counter is judged once, by all of its readings. What counts are the moments at which it was seen to have grown: one
that is updated more seldom than it is read tells nothing between its updates, and of a short window it would show the
growth of much more, or none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from utils.numbers import counted
from utils.telemetry.plausible import LATE_MS, clear_ms
from utils.telemetry.series import ENERGY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from utils.telemetry.records import Window
    from utils.telemetry.series import Series

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

# A device that is on always draws power, and counters are updated at least every 100 ms.
FROZEN_AFTER_MS = 5_000
# What is set back more often, and in more than so many of its growths, counts something else.
MOST_LEAPS, MOST_OF_GROWTHS = 3, 0.05


class Growth(NamedTuple):
    """What it grew by in a window: energy in J over `covered_ms` of it. faults: where it is not to be believed.

    unsure_j: by so much it is off if the load changed just at the window's ends.
    """

    joules: float
    covered_ms: float
    faults: str
    unsure_j: float = 0.0


@dataclass(frozen=True)
class Counter:
    """One device's counter. starts_ms, ends_ms, growths_mj: from update to update; NaN where that is not known.

    leaps, standstills: where it is no counter, each as from when to when (ms), and from which to which reading (mJ).
    readings: how many there are. is_still: whether it showed one value all the time. error: the device's last word.
    """

    starts_ms: Floats
    ends_ms: Floats
    growths_mj: Floats
    leaps: Floats
    standstills: Floats
    readings: int = 0
    is_still: bool = False
    error: str = ""

    def powers(self, most_w: float) -> dict[int, float]:
        """When it was updated, in ms -> the mean power in W since the update before, where that can be."""
        watts = self.growths_mj / (self.ends_ms - self.starts_ms)  # mJ / ms
        can_be = watts <= most_w  # what is not known is no number
        return dict(zip(self.ends_ms[can_be].astype(int).tolist(), watts[can_be].tolist(), strict=True))

    def over(self, window: Window, hole_ms: float) -> Growth:
        """What it grew by in the window.

        It counts on through a hole. What is cut by the window's edge is divided by time, which a hole forbids. Where
        it leaps just outside, the reading before or behind is a wrong one, and may lie inside.
        """
        first = int(np.searchsorted(self.ends_ms, window.start_ms, side="right"))
        last = int(np.searchsorted(self.starts_ms, window.end_ms, side="left"))
        starts, ends = self.starts_ms[first:last], self.ends_ms[first:last]
        inside = np.minimum(ends, window.end_ms) - np.maximum(starts, window.start_ms)
        lengths, growths = ends - starts, self.growths_mj[first:last]
        is_known = ~np.isnan(growths)
        counts = is_known & ((inside == lengths) | (lengths <= hole_ms))
        joules = growths[counts] / 1000 * inside[counts] / lengths[counts]
        leaps, standstills = _around(self.leaps, window, hole_ms), _around(self.standstills, window, 0)
        faults = self._faults(leaps, standstills)
        if len(leaps) > max(MOST_LEAPS, MOST_OF_GROWTHS * is_known.sum()):
            return Growth(0.0, 0.0, faults)
        cut = first + np.flatnonzero(counts & (inside < lengths))
        unsure_j = sum(self._unsure_j(place, window) for place in cut.tolist())
        return Growth(float(joules.sum()), float(inside[counts].sum()), faults, unsure_j)

    def why_nothing(self, window: Window, otherwise: str) -> str:
        """Why it tells nothing of the window; `otherwise` where no word of the device says it."""
        if not np.isfinite(self.growths_mj).any():
            return self.error or ("it stood still" if self.is_still else otherwise)
        return (self.ends_ms[-1] <= window.start_ms and self.error) or otherwise

    def _unsure_j(self, place: int, window: Window) -> float:
        """By how much the part inside of a growth is off, if power inside was that of the next whole growth there.

        Where there is none, power outside is taken as that of the growth beyond.
        """
        start_ms, end_ms = float(self.starts_ms[place]), float(self.ends_ms[place])
        inside_ms = min(end_ms, window.end_ms) - max(start_ms, window.start_ms)
        unsure_j = 0.0
        for beyond, within, outside_ms in (
            (place - 1, place + 1, window.start_ms - start_ms),
            (place + 1, place - 1, end_ms - window.end_ms),
        ):
            is_told = self._is_inside(within, window) and not math.isnan(self._watts(within))
            other, part_ms = (within, inside_ms) if is_told else (beyond, outside_ms)
            off_j = abs(self._watts(other) - self._watts(place)) * part_ms / 1000
            if outside_ms > 0 and not math.isnan(off_j):
                unsure_j += off_j
        return unsure_j

    def _is_inside(self, place: int, window: Window) -> bool:
        is_there = 0 <= place < len(self.growths_mj)
        return is_there and bool(
            window.start_ms <= self.starts_ms[place] and self.ends_ms[place] <= window.end_ms
        )

    def _watts(self, place: int) -> float:
        """The mean power of a growth; NaN where there is none, or it is not known."""
        if not 0 <= place < len(self.growths_mj):
            return math.nan
        return float(self.growths_mj[place] / (self.ends_ms[place] - self.starts_ms[place]))

    @staticmethod
    def _faults(leaps: Floats, standstills: Floats) -> str:
        texts = []
        if len(leaps):
            _, _, before, after = leaps[0]
            times = counted(len(leaps), "time")
            texts.append(f"it was reset or misread {times}, first from {before:.0f} to {after:.0f} mJ")
        if len(standstills):
            start, end, at, _ = standstills[0]
            texts.append(f"it stood still at {at:.0f} mJ for {(end - start) / 1000:.1f} s")
        return "; ".join(texts)


def counter_of(series: Series, most_w: float) -> Counter:
    """The counter of a device that draws `most_w` at most."""
    column = np.asarray(series.columns.get(ENERGY, ()), dtype=float)
    is_read = column >= 0
    times, readings = np.asarray(series.times_ms, dtype=float)[: len(column)][is_read], column[is_read]
    is_last = np.append(np.diff(times) > 0, True)[: len(times)]  # of those of one moment
    times, readings = times[is_last], readings[is_last]
    range_mj = series.energy_range_mj
    kept = ~_misread(times, readings, range_mj, most_w)
    times, readings = times[kept], readings[kept]
    if not len(times):
        nothing, no_faults = np.empty(0), np.empty((0, 4))
        return Counter(nothing, nothing, nothing, no_faults, no_faults, error=series.error)
    return replace(_judged(times, readings, range_mj, most_w), error=series.error)


def _judged(times: Floats, readings: Floats, range_mj: float | None, most_w: float) -> Counter:
    growths = _growths(times, readings, range_mj, most_w)
    is_known = ~np.isnan(growths)
    # so long it showed one value: from the first reading of it to the last
    begins = np.flatnonzero(np.append(True, growths != 0))
    lasts = np.append(begins[1:] - 1, len(times) - 1)
    is_frozen = times[lasts] - times[begins] > FROZEN_AFTER_MS
    # nobody knows when it was updated to a value that was there when reading began, unless it is updated all the time
    is_first, is_single = np.append(True, ~is_known)[begins], begins == lasts
    updates = np.flatnonzero(~is_first | (is_single & np.append(is_single[1:], True)))
    at = begins[updates]
    totals, breaks = (
        np.append(0, np.cumsum(each))[at] for each in (np.where(is_known, growths, 0), ~is_known)
    )
    is_sound = (np.diff(breaks) == 0) & ~is_frozen[updates[:-1]]
    leapt = np.flatnonzero(~is_known & (np.diff(times) <= clear_ms(range_mj, most_w)))
    still = (times[begins], times[lasts], readings[begins], readings[lasts])
    return Counter(
        starts_ms=times[at][:-1],
        ends_ms=times[at][1:],
        growths_mj=np.where(is_sound, np.diff(totals), np.nan),
        leaps=np.stack((times[leapt], times[leapt + 1], readings[leapt], readings[leapt + 1]), axis=1),
        standstills=np.stack(still, axis=1)[is_frozen],
        readings=len(times),
        is_still=len(begins) == 1 and len(times) > 1,
    )


def _growths(
    times: Floats, readings: Floats, range_mj: float | None, most_w: float, apart: int = 1
) -> Floats:
    """`growth_mj` from each reading to the next, or to the one `apart` places later.

    NaN where that is None, and where it may have wrapped twice.
    """
    passed, growths = times[apart:] - times[:-apart], readings[apart:] - readings[:-apart]
    with np.errstate(over="ignore"):
        growths = np.where(growths < 0, growths + (range_mj or 0.0), growths)
    can_be = (
        (growths >= 0) & (growths <= most_w * (passed + LATE_MS)) & (passed <= clear_ms(range_mj, most_w))
    )
    return np.where(can_be, growths, np.nan)


def _misread(times: Floats, readings: Floats, range_mj: float | None, most_w: float) -> Flags:
    """Each reading that a neighbour contradicts while all around it agree: a single one, and no reset or wrap."""
    is_misread = np.zeros(len(times), dtype=bool)
    if len(times) < 3:
        return is_misread
    agree = ~np.isnan(_growths(times, readings, range_mj, most_w))
    without = ~np.isnan(_growths(times, readings, None, most_w, apart=2))
    without &= times[2:] - times[:-2] <= clear_ms(range_mj, most_w)
    before, after = np.append(True, agree[:-2]), np.append(agree[2:], True)
    is_misread[1:-1] = ~(agree[:-1] & agree[1:]) & without & before & after
    return is_misread


def _around(faults: Floats, window: Window, around_ms: float) -> Floats:
    """Those in the window, or so near to it."""
    return faults[(faults[:, 0] < window.end_ms + around_ms) & (faults[:, 1] > window.start_ms - around_ms)]
