"""How often methods of comparing two sides of a few rounds err, and how often they show a difference of 5 %.

    python benches/comparison_methods.py [--pairs 2000]

Simulated pairs with a seed; FlagPerf's own is `run_benchmarks.comparison.ratios.ratio_of`, of at most 500 pairs. The
nominal rate is 5 %. The table stands in docs/comparing.md. Takes some minutes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

from run_benchmarks.comparison.ratios import ratio_of
from run_benchmarks.comparison.statistics import summarise

Sides = NDArray[np.float64]
Method = Callable[[Sides, Sides], NDArray[np.bool_]]
RANDOM = np.random.default_rng(20261122)
SIZES = ((3, 3), (4, 4), (5, 5), (7, 7), (10, 10), (3, 10))
OWN_PAIRS, SLOW_PAIRS, INTERVALS = 500, 300, 400


def normal(pairs: int, rounds: int, noise: float = 0.01) -> Sides:
    """Values around 1."""
    return 1 + RANDOM.normal(0, noise, (pairs, rounds))


NOISES: dict[str, Callable[[int, int], Sides]] = {
    "normal, 1 %": normal,
    "lognormal, 30 %": lambda pairs, rounds: np.exp(RANDOM.normal(0, 0.3, (pairs, rounds))),
    "a tail of slow rounds": lambda pairs, rounds: 1 / (1 + RANDOM.exponential(0.02, (pairs, rounds))),
    "one of two values": lambda pairs, rounds: np.where(RANDOM.random((pairs, rounds)) < 0.5, 1.0, 1.01),
}


def flagperf(base: Sides, other: Sides) -> NDArray[np.bool_]:
    """As `compare` does it."""
    pairs = list(zip(base, other, strict=True))[:OWN_PAIRS]
    ratios = [ratio_of(list(map(float, one)), list(map(float, two))) for one, two in pairs]
    return np.array([each.p_value is not None and each.p_value <= 0.05 for each in ratios])


def welch(base: Sides, other: Sides) -> NDArray[np.bool_]:
    """Welch's t test on logarithms."""
    result: NDArray[np.bool_] = (
        stats.ttest_ind(np.log(base), np.log(other), axis=1, equal_var=False).pvalue <= 0.05
    )
    return result


def student(base: Sides, other: Sides) -> NDArray[np.bool_]:
    """Student's t test on logarithms."""
    result: NDArray[np.bool_] = stats.ttest_ind(np.log(base), np.log(other), axis=1).pvalue <= 0.05
    return result


def ranks(base: Sides, other: Sides) -> NDArray[np.bool_]:
    """Mann and Whitney's exact test."""
    result: NDArray[np.bool_] = stats.mannwhitneyu(base, other, axis=1, method="exact").pvalue <= 0.05
    return result


def permutation(base: Sides, other: Sides) -> NDArray[np.bool_]:
    """All permutations of both sides (a thousand where there are more), of the difference of mean logarithms."""
    one, both = base.shape[1], base.shape[1] + other.shape[1]
    chosen = list(itertools.combinations(range(both), one))
    if len(chosen) > 1000:
        chosen = [tuple(range(one)), *(tuple(RANDOM.choice(both, one, replace=False)) for _ in range(999))]
    weights = np.full((len(chosen), both), -1 / (both - one))
    for row, places in zip(weights, chosen, strict=True):
        row[list(places)] = 1 / one
    differences = np.abs(np.log(np.concatenate([base, other], axis=1)) @ weights.T)
    result: NDArray[np.bool_] = (differences >= differences[:, :1] - 1e-12).mean(axis=1) <= 0.05
    return result


def percentile(base: Sides, other: Sides) -> NDArray[np.bool_]:
    """The percentile bootstrap of the ratio of medians, a thousand resamples."""
    shown = []
    for one, two in zip(base[: 4 * SLOW_PAIRS], other, strict=False):
        ratios = np.median(RANDOM.choice(one, (1000, one.size)), axis=1)
        ratios /= np.median(RANDOM.choice(two, (1000, two.size)), axis=1)
        low, high = np.percentile(ratios, [2.5, 97.5])
        shown.append(low > 1 or high < 1)
    return np.array(shown)


def accelerated(base: Sides, other: Sides) -> NDArray[np.bool_]:
    """scipy's BCa bootstrap of the difference of mean logarithms."""

    def difference(one: Sides, two: Sides, axis: int) -> Sides:
        return np.asarray(one.mean(axis) - two.mean(axis))

    shown = []
    for one, two in zip(np.log(base[:SLOW_PAIRS]), np.log(other), strict=False):
        result = stats.bootstrap((one, two), difference, n_resamples=999, method="BCa", rng=RANDOM)
        shown.append(result.confidence_interval.low > 0 or result.confidence_interval.high < 0)
    return np.array(shown)


METHODS: dict[str, Method] = {
    "FlagPerf": flagperf,
    "Welch": welch,
    "Student": student,
    "Mann-Whitney": ranks,
    "permutation": permutation,
    "percentile": percentile,
    "BCa": accelerated,
}


def coverage(rounds: int) -> float:
    """How often the summary's interval holds the true mean."""
    summaries = (summarise(list(map(float, row))) for row in normal(INTERVALS, rounds))
    return (
        sum(bool(each.interval and each.interval[0] <= 1 <= each.interval[1]) for each in summaries)
        / INTERVALS
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=2000)
    pairs = parser.parse_args().pairs
    warnings.simplefilter("ignore")  # of sides that do not vary
    result: dict[str, dict[str, float]] = {}

    def row(name: str, base: Sides, other: Sides) -> None:
        result[name] = {
            method: round(100 * float(test(base, other).mean()), 1) for method, test in METHODS.items()
        }
        print(f"| {name} | {' | '.join(map(str, result[name].values()))} |", flush=True)

    print(f"| rounds a side, noise | {' | '.join(METHODS)} |")
    for one, two in SIZES:
        for name, noise in NOISES.items():
            row(f"{one}, {two}: {name}", noise(pairs, one), noise(pairs, two))
    for one, two in ((5, 5), (10, 3)):
        row(f"{one}, {two}: normal, 1 % and 5 %", normal(pairs, one), normal(pairs, two, 0.05))
    for rounds in (3, 4, 5):
        row(f"{rounds}, {rounds}: 5 % apart, 1 %", normal(pairs, rounds), 0.95 * normal(pairs, rounds))
    covered = {rounds: round(100 * coverage(rounds), 1) for rounds in (6, 8, 10, 20)}
    print(f"coverage of the summary's 95 % interval, by rounds: {covered}")
    print(json.dumps({**result, "coverage": covered}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
