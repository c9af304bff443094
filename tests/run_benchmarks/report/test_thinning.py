"""Fewer points for a chart: those that stay are readings, and no least or greatest one is lost."""

from __future__ import annotations

import numpy as np
import pytest

from run_benchmarks.report.thinning import Grid, on_grid, thinned

NAN = float("nan")


@pytest.mark.parametrize("seed", range(5))
def test_a_curve_keeps_its_ends_and_every_extreme(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=5000)
    values[::7] = NAN
    places = thinned(values, 100)
    assert len(places) <= 100 and (np.diff(places) > 0).all()
    assert {0, 4999, int(np.nanargmin(values)), int(np.nanargmax(values))} <= set(places.tolist())
    for part in np.array_split(values, 20):  # none is without a point
        assert set(part[~np.isnan(part)].tolist()) & set(values[places].tolist())


def test_what_is_short_or_empty_stays_as_it_is() -> None:
    assert thinned(np.array([1.0, NAN, 3.0]), 10).tolist() == [0, 1, 2]
    assert thinned(np.full(50, NAN), 10).tolist() == [0, 49]


def test_a_pair_of_places_has_the_least_and_the_greatest_reading_in_their_order() -> None:
    times = np.array([0.0, 0.5, 1.0, 1.5, 2.5, 6.0, 7.0, 99.0])
    values = np.array([5.0, 9.0, 1.0, 9.0, 4.0, NAN, 3.0, 7.0])
    assert on_grid(times, values, Grid(2.0, 4)) == [9.0, 1.0, 4.0, 4.0, None, None, 3.0, 3.0]
    assert on_grid(times, np.full(8, NAN), Grid(2.0, 4)) == [None] * 8


def test_a_grid_reaches_the_end_with_no_more_places_than_it_may_have() -> None:
    for end_s, interval_s in ((36_000.0, 1.0), (10.0, 1.0), (0.0, 1.0)):
        places = Grid.over(end_s, interval_s, 100).places
        assert len(places) <= 102 and places[0] >= 0 and places[-1] >= end_s - interval_s


def test_what_is_read_seldom_fills_the_places_of_what_is_read_often() -> None:
    fine, coarse = Grid(2.0, 6), Grid(10.0, 2)
    assert fine.filled([1.0, 2.0, None, 4.0], coarse) == [*[1.0] * 5, *[2.0] * 5, None, None]
    values: list[float | None] = [float(place) for place in range(12)]
    assert fine.filled(values, Grid(2.0, 6)) == values
