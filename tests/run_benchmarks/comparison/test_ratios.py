"""The ratio of two sides: how often it errs, how often it shows what is there, and where it has to say nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from run_benchmarks.comparison.ratios import (
    ERROR_RATE,
    Ratio,
    holm,
    needed,
    ratio_of,
    ratio_of_runs,
    would_do,
)
from run_benchmarks.comparison.records import Cell

PAIRS = 1000


def side(values: random.Random, mean: float = 1.0, count: int = 5, noise: float = 0.01) -> list[float]:
    return [mean * values.gauss(1, noise) for _ in range(count)]


def shows(ratio: Ratio) -> bool:
    assert ratio.p_value is not None and ratio.interval is not None
    is_shown = ratio.p_value <= ERROR_RATE
    assert is_shown == (not ratio.interval[0] <= 1 <= ratio.interval[1]), "interval and verdict are one"
    return is_shown


def so_many(ratio: Ratio, difference: float = 0.05) -> str:
    """How many rounds would do, of sides that show no difference."""
    return would_do(replace(ratio, rounds_needed=needed(ratio, difference)), difference)


@pytest.fixture(scope="module")
def pairs() -> list[tuple[list[float], list[float]]]:
    """Pairs of sides of five rounds between which there is no difference, with 1 % of noise."""
    values = random.Random(20261122)
    return [(side(values), side(values)) for _ in range(PAIRS)]


@pytest.fixture(scope="module")
def ratios(pairs: list[tuple[list[float], list[float]]]) -> list[Ratio]:
    return [ratio_of(*pair) for pair in pairs]


def test_of_pairs_without_a_difference_about_one_in_twenty_shows_one(ratios: list[Ratio]) -> None:
    # 50 are nominal; binomial, 3 standard deviations: 29..71
    assert 29 <= sum(map(shows, ratios)) <= 71


def test_a_difference_of_5_percent_at_1_percent_noise_is_shown_by_5_rounds_a_side(
    pairs: list[tuple[list[float], list[float]]], ratios: list[Ratio]
) -> None:
    """A side times 0.95 has an interval times 0.95, which is seen of some pairs and reckoned of the rest."""
    for (base, other), ratio in list(zip(pairs, ratios, strict=True))[:20]:
        slower = ratio_of(base, [0.95 * value for value in other])
        assert ratio.interval and slower.interval == pytest.approx([0.95 * end for end in ratio.interval])
        assert shows(slower)
    shown = sum(0.95 * each.interval[1] < 1 for each in ratios if each.interval)
    assert shown >= 0.95 * PAIRS


def test_sides_of_unlike_noise_and_number_err_little_more() -> None:
    """Where Student's test alone errs in a third of all pairs."""
    values = random.Random(7)
    several = [(side(values, count=10), side(values, count=3, noise=0.05)) for _ in range(200)]
    assert sum(shows(ratio_of(*pair)) for pair in several) <= 0.10 * 200


def test_the_ratio_is_of_geometric_means_and_the_interval_that_of_welch() -> None:
    ratio = ratio_of([1.0, 2.0, 4.0], [2.0, 4.0, 8.0])
    assert ratio.value == pytest.approx(2.0)
    # t = log 2 / (log 2 x sqrt(2 / 3)), 4 degrees of freedom: quantile 2.7764
    half = 2.7764451 * math.log(2) * math.sqrt(2 / 3)
    assert ratio.interval == pytest.approx((2 * math.exp(-half), 2 * math.exp(half)))
    assert ratio.p_value == pytest.approx(0.2879, abs=1e-4)
    assert ratio.noise == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("base", "other", "reason"),
    [
        ([1.0], [2.0], "too few rounds: 1 round on a side"),
        ([1.0] * 9, [2.0, 2.1], "too few rounds: 2 rounds on a side"),
        ([1.0] * 5, [2.0] * 5, "count as one"),
        ([1.0] * 5, [2.0, 2.1, 2.0], "count as one"),
    ],
)
def test_where_there_is_no_interval_the_ratio_stands_and_the_reason(
    base: Sequence[float], other: Sequence[float], reason: str
) -> None:
    ratio = ratio_of(base, other)
    assert ratio.value == pytest.approx(2.0, rel=0.1) and ratio.interval is None and reason in ratio.reason


def test_of_values_that_are_not_above_0_there_is_no_ratio() -> None:
    assert ratio_of([1.0, 0.0, 2.0], [1.0] * 3).value is None
    assert ratio_of([1.0] * 3, [-1.0] * 3).reason == "a ratio needs values above 0"


def test_rounds_of_several_runs_are_as_many_as_there_are_runs() -> None:
    """Runs differ by 1 %, rounds of one by 0.3 %: of rounds alone 40 in 100 alike pairs would show a difference."""
    values = random.Random(3)
    runs = [[side(values, mean, 5, 0.003) for mean in side(values, 1.0, 3)] for _ in range(400)]
    several = [ratio_of_runs(*pair) for pair in zip(runs[::2], runs[1::2], strict=True)]
    assert sum(map(shows, several)) <= 0.10 * len(several)
    assert {ratio.unit for ratio in several} == {"run"}
    two = ratio_of_runs(runs[0][:2], runs[1])
    assert two.p_value is None and "too few runs: 2 runs on a side" in two.reason
    assert "runs a side would be enough" in so_many(two)
    flat = [[value for run in of_side for value in run] for of_side in runs[:2]]
    of_rounds = ratio_of(*flat)
    assert (
        ratio_of_runs(*([each] for each in flat))
        == of_rounds
        == ratio_of_runs(*([[v] for v in f] for f in flat))
    )


def test_sides_that_do_not_vary_differ_or_do_not() -> None:
    assert ratio_of([2.0] * 5, [2.0 + 1e-12] * 5).p_value == 1.0
    assert ratio_of([2.0] * 5, [2.0 + 3e-9] * 5).p_value is None
    assert ratio_of([2.0] * 5, [2.5] * 5, is_fixed=True).p_value == pytest.approx(2 / 2**10)
    one_varies = ratio_of([2.0] * 5, [2.5, 2.51, 2.49, 2.5, 2.52], is_fixed=True)
    assert one_varies.interval and one_varies.interval[0] > 1.2


def test_values_far_apart_have_an_interval_of_numbers() -> None:
    ratio = ratio_of([1e-99, 1e99, 1.0], [1e99, 1e-99, 1.0])
    assert ratio.interval and all(map(math.isfinite, ratio.interval))
    for base, other in ((1e-300, 9e99), (9e99, 1e-300), (1.0, math.inf), (3.638e-12, 7162.0)):
        too_far = ratio_of([base] * 3, [other] * 3)
        assert too_far.value is None and too_far.reason == "the values lie too far apart for a ratio"


def test_how_many_rounds_would_do() -> None:
    alone = ratio_of([100.0], [50.0])
    assert "3 rounds a side with a noise of 1 % or 29 rounds a side with a noise of 5 %" in so_many(alone)
    seen = ratio_of([99.0, 101.0, 100.0], [50.0, 51.0, 49.0])
    assert so_many(seen).endswith("5 rounds a side would be enough with the noise that was seen")
    assert "not even a thousand" in so_many(ratio_of([1.0, 9.0, 3.0], [9.0, 1.0, 3.0]), 0.001)


def test_of_many_tests_fewer_show_something() -> None:
    """Holm's procedure: 0.005 x 4, 0.01 x 3 are below 0.05; 0.03 x 2 is not, and ends it."""
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}) == {"a", "d"}
    assert holm({"a": 0.04, "b": None}) == {"a"}
    assert holm({}) == set()
    nothing = [
        holm({number: random.Random(seed * 20 + number).random() for number in range(20)})
        for seed in range(400)
    ]
    assert sum(map(bool, nothing)) <= 0.085 * 400, "one family in twenty, and not one figure"


@pytest.mark.parametrize("of_runs", [False, True])
def test_the_means_of_two_sides_have_the_ratio_that_stands_beside_them(of_runs: bool) -> None:
    """Also where the ratio is of runs, of which one has more rounds than the others."""
    sides = [Cell([1.0, 2.0, 4.0, 9.0], [0, 0, 1, 2], None), Cell([3.0, 5.0, 8.0, 8.0], [0, 1, 2, 2], None)]
    base, other = (cell.centre(of_runs=of_runs) for cell in sides)
    assert base is not None and other is not None
    ratio = (
        ratio_of_runs(*(cell.by_run for cell in sides))
        if of_runs
        else ratio_of(sides[0].values, sides[1].values)
    )
    assert ratio.unit == ("run" if of_runs else "round")
    assert other / base == pytest.approx(ratio.value)
    assert Cell([-1.0, 3.0], [0, 0], None).centre(of_runs=of_runs) == 1.0
