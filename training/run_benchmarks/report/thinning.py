"""Fewer points for a chart, of which none is made up and no spike is lost: the least and the greatest of each part.

A screen has some hundred columns of pixels. Drawing the least and the greatest value of each column gives the same
picture as drawing all of them (Jugel et al., M4, PVLDB 7(10), 2014, keep the first and last of a column too).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from run_benchmarks.report.chart import Extent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Places = NDArray[np.int64]

MOST_POINTS = 1_200  # of a line


def thinned(values: Values, most: int = MOST_POINTS) -> Places:
    """The places of at most `most` of the values, ascending: of each part of equal length the least and the greatest.

    The first and the last place are among them. NaN is no value.
    """
    if len(values) <= most:
        return np.arange(len(values))
    there = np.flatnonzero(~np.isnan(values))
    pairs = there * (most // 2 - 1) // len(values)
    extremes = there[np.concatenate(_extremes(values[there], pairs))]
    places: Places = np.unique([0, *extremes, len(values) - 1])
    return places


@dataclass(frozen=True)
class Grid:
    """Places on the time axis, from 0 on, two in each `pair_s` seconds."""

    pair_s: float
    pairs: int

    @classmethod
    def over(cls, end_s: float, interval_s: float, most: int = MOST_POINTS) -> Grid:
        """Up to the end; a pair is as long as two readings, or as it must be for `most` places."""
        pair_s = max(2 * interval_s, 2 * end_s / most, 1e-3)
        return cls(pair_s, max(1, int(end_s / pair_s) + 1))

    @property
    def places(self) -> list[float]:
        """Where they are, in seconds."""
        return [round((place + 0.5) * self.pair_s / 2, 3) for place in range(2 * self.pairs)]

    def filled(self, values: list[float | None], coarser: Grid) -> list[float | None]:
        """The values on a grid that is no finer than this one, on this one: each fills the places of its time."""
        if coarser == self:
            return values
        each_s = coarser.pair_s / 2
        return [values[min(int(place / each_s), len(values) - 1)] for place in self.places]


def on_grid(times: Values, values: Values, grid: Grid) -> list[float | None]:
    """Readings on a grid that other lines share: in each pair of places the least and the greatest of its time.

    They stand in the order in which they were read. One reading fills both places; none leaves None.

    Args:
        times: ascending, of each reading; values: NaN is none.
    """
    pairs = np.floor(times / grid.pair_s).astype(np.int64)
    is_inside = (pairs >= 0) & (pairs < grid.pairs) & ~np.isnan(values)
    pairs, values = pairs[is_inside], values[is_inside]
    places = np.full((grid.pairs, 2), np.nan)
    if len(values):
        extremes = np.sort(_extremes(values, pairs), axis=0)
        places[pairs[extremes[0]]] = values[extremes].T
    return [None if value != value else value for value in places.ravel().tolist()]


def _extremes(values: Values, parts: Places) -> tuple[Places, Places]:
    """Of each part the place of its least value and that of its greatest.

    Args:
        values: without NaN; parts: ascending, the number of each value's part.
    """
    starts = np.flatnonzero(np.diff(parts, prepend=-1))
    lengths = np.diff(starts, append=len(values))

    def first(extremes: Values) -> Places:
        hits = np.flatnonzero(values == np.repeat(extremes, lengths))
        return hits[np.searchsorted(hits, starts)]

    return first(np.minimum.reduceat(values, starts)), first(np.maximum.reduceat(values, starts))


def extent_of(values: Values) -> Extent | None:
    """What all of the values come to; None where there is none."""
    there = values[~np.isnan(values)]
    if not len(there):
        return None
    return Extent(len(there), float(there.min()), float(there.mean()), float(there.max()))
