"""Fewer points for a chart, of which none is made up and no spike is lost: the least and the greatest of each part.

A screen has some hundred columns of pixels. Drawing the least and the greatest value of each column gives the same
picture as drawing all of them (Jugel et al., M4, PVLDB 7(10), 2014, keep the first and last of a column too).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from run_benchmarks.report.chart import Extent, Grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_POINTS = 1_200  # of a line


def thinned(values: NDArray[np.float64], most: int = MOST_POINTS) -> NDArray[np.int64]:
    """The places of at most `most` of the values, ascending: of each part of equal length the least and the greatest.

    The first and the last place are among them. NaN is no value; a part without any keeps its first place.
    """
    if len(values) <= most:
        return np.arange(len(values))
    starts = np.linspace(0, len(values), most // 2, endpoint=False).astype(np.int64)
    ends = np.append(starts[1:], len(values))
    places = [
        start + place
        for start, end in zip(starts, ends, strict=True)
        for place in _extremes(values[start:end])
    ]
    places[0], places[-1] = 0, len(values) - 1
    return np.array(sorted(set(places)))


def _extremes(part: NDArray[np.float64]) -> tuple[int, int]:
    if np.isnan(part).all():
        return 0, 0
    return int(np.nanargmin(part)), int(np.nanargmax(part))


def on_grid(times: NDArray[np.float64], values: NDArray[np.float64], grid: Grid) -> list[float | None]:
    """Readings on a grid that other lines share: in each pair of places the least and the greatest of its time.

    They stand in the order in which they were read. One reading fills both places; none leaves None.

    Args:
        times: ascending, of each reading; values: NaN is none.
    """
    pairs = grid.count // 2
    pair = np.floor((times - grid.start + grid.step / 2) / (2 * grid.step)).astype(np.int64)
    is_inside = (pair >= 0) & (pair < pairs) & ~np.isnan(values)
    pair, kept = pair[is_inside], values[is_inside]
    places = np.full((pairs, 2), np.nan)
    if len(kept):
        order = np.lexsort((kept, pair))
        first = np.flatnonzero(np.diff(pair[order], prepend=-1))
        last = np.append(first[1:], len(order)) - 1
        least, greatest = np.sort(np.stack([order[first], order[last]]), axis=0)
        places[pair[least]] = np.stack([kept[least], kept[greatest]], axis=1)
    return [None if value != value else value for value in places.ravel().tolist()]


def extent_of(values: NDArray[np.float64]) -> Extent | None:
    """What all of the values come to; None where there is none."""
    there = values[~np.isnan(values)]
    if not len(there):
        return None
    return Extent(len(there), float(there.min()), float(there.mean()), float(there.max()))


def grid_over(end_s: float, interval_s: float, start_s: float = 0.0, most: int = MOST_POINTS) -> Grid:
    """A grid from start to end whose pairs of places are as wide as two readings, or as few as `most` places allow."""
    pair_s = max(2 * interval_s, 2 * (end_s - start_s) / most, 1e-3)
    pairs = max(1, int((end_s - start_s) / pair_s) + 1)
    return Grid(start_s + pair_s / 4, pair_s / 2, 2 * pairs)
