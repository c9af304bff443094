"""The ratio of a figure on two sides, with an interval, and whether a difference is shown: docs/comparing.md."""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from run_benchmarks.comparison.statistics import CONFIDENCE, FEWEST_ROUNDS, rounds_needed, vary
from utils.figures import HIGHER, LOWER
from utils.numbers import counted

K = TypeVar("K")
BETTER, WORSE = "better", "worse"
# What a comparison says of a figure.
Shown = Literal[
    "faster",
    "slower",
    "better",
    "worse",
    "higher",
    "lower",
    "no difference shown",
    "not comparable",
]
NOT_SHOWN: Final = "no difference shown"
NOT_COMPARABLE: Final = "not comparable"
WORDS: Mapping[str, Shown] = {BETTER: "better", WORSE: "worse", HIGHER: "higher", LOWER: "lower"}
OF_SPEED: Mapping[str, Shown] = {**WORDS, BETTER: "faster", WORSE: "slower"}
ERROR_RATE = 1 - CONFIDENCE
# What is said where no round tells of the noise: its standard deviation as a part of the figure.
NOISES = (0.01, 0.05)
ROUND, RUN = "round", "run"
REPEATED = "too few {}s: those of a side do not vary, as with one seed, and count as one"
LARGEST_LOG = 700.0  # of what is still a number
# No two machines lie so far apart in one figure: the smaller one is what rounding left of a difference that is none.
FARTHEST = 1e12


@dataclass(frozen=True)
class Needed:
    """So many rounds, or runs, a side would be enough to show a difference. count: None where a thousand would not.

    noise: standard deviation of the logarithms of a side; is_seen: it is these sides' own, and no example.
    """

    noise: float
    is_seen: bool
    count: int | None


@dataclass(frozen=True)
class Ratio:
    """Other side / base, of their geometric means; `interval` with CONFIDENCE.

    p_value: of a two-sided test that the sides are alike; None where nothing can be shown.
    reason: why the value, the interval or the test is missing. noise: standard deviation of the logarithms of a side,
    from both together; None where no side has two rounds.
    direction: what is shown: BETTER or WORSE, or HIGHER or LOWER of what is neither; empty for no difference.
    held_back: the interval by itself is without 1, but one such among so many figures shows nothing.
    unit: what the values are of, ROUND or RUN.
    verdict: the same in a word; NOT_COMPARABLE where there is no ratio, and `reason` says why.
    rounds_needed: where no difference is shown, how many of `unit` would show one; by NOISES where no noise was seen.
    """

    value: float | None
    interval: tuple[float, float] | None = None
    p_value: float | None = None
    reason: str = ""
    noise: float | None = None
    direction: str = ""
    held_back: bool = False
    unit: str = ROUND
    verdict: Shown = NOT_COMPARABLE
    rounds_needed: Sequence[Needed] = ()


def ratio_of_runs(
    base: Sequence[Sequence[float]], other: Sequence[Sequence[float]], *, is_fixed: bool = False
) -> Ratio:
    """The ratio of two sides' values, a run's together, at least one on each.

    Rounds of one run share its state. Where a side is of several runs it can be seen how these differ, and the test is
    of the runs' geometric means; of one run on each side it is of their rounds.
    """
    runs = [*base, *other]
    if len(runs) == 2 or all(len(run) == 1 for run in runs) or min(map(min, runs)) <= 0:
        flat = ([value for run in side for value in run] for side in (base, other))
        return ratio_of(*flat, is_fixed=is_fixed)
    means = ([statistics.geometric_mean(run) for run in side] for side in (base, other))
    return ratio_of(*means, is_fixed=is_fixed, unit=RUN)


def ratio_of(
    base: Sequence[float], other: Sequence[float], *, is_fixed: bool = False, unit: str = ROUND
) -> Ratio:
    """The ratio of two sides' values, at least one on each.

    Rounds that do not vary repeat each other, as those with one seed do: they count as one, unless the figure is one
    that is the same whatever the round (`is_fixed`).

    The interval is the wider one, and the p-value the larger one, of Welch's t test and Student's on the logarithms:
    with as many rounds on both sides that is Welch's.
    """
    if min(*base, *other) <= 0:
        return Ratio(None, reason="a ratio needs values above 0")
    logs = [[math.log(value) for value in side] for side in (base, other)]
    distance = statistics.fmean(logs[1]) - statistics.fmean(logs[0])
    if not abs(distance) <= math.log(FARTHEST):
        return Ratio(None, reason="the values lie too far apart for a ratio")
    ratio = math.exp(distance)
    noise = _noise(logs)
    fewest = min(len(base), len(other))
    if fewest < FEWEST_ROUNDS:
        reason = f"too few {unit}s: {counted(fewest, unit)} on a side, {FEWEST_ROUNDS} are the fewest"
        return Ratio(ratio, reason=reason, noise=noise, unit=unit)
    constant = [not vary(side) for side in (base, other)]
    if any(constant) and not is_fixed and vary([*base, *other]):
        return Ratio(ratio, reason=REPEATED.format(unit), unit=unit)
    if all(constant):
        # a figure that takes one of two values by chance comes to this no more often
        p_value = 2 * 0.5 ** (len(base) + len(other)) if vary([base[0], other[0]]) else 1.0
        return Ratio(ratio, p_value=p_value, reason="no interval: no side varies", noise=noise, unit=unit)
    p_value, (low, high) = _tested(logs)
    interval = (math.exp(low), math.exp(min(high, LARGEST_LOG)))
    return Ratio(ratio, interval, p_value, noise=noise, unit=unit)


def holm(p_values: Mapping[K, float | None]) -> set[K]:
    """Those of a family of tests that show something, so that any false one is among them in 1 of 20 families.

    Holm (1979), A Simple Sequentially Rejective Multiple Test Procedure. None is a test that cannot show anything.
    """
    ordered = sorted((value, number) for number, value in enumerate(p_values.values()) if value is not None)
    keys, shown = list(p_values), set[K]()
    for passed, (value, number) in enumerate(ordered):
        if value > ERROR_RATE / (len(ordered) - passed):
            break
        shown.add(keys[number])
    return shown


def _tested(logs: Sequence[Sequence[float]]) -> tuple[float, tuple[float, float]]:
    """The p-value, and the interval of the difference of the means of logarithms, other less base."""
    from scipy import stats

    base, other = logs
    kinds = (False,) if len(base) == len(other) else (False, True)  # Student's is then never the wider one
    with warnings.catch_warnings():  # of a side that does not vary
        warnings.simplefilter("ignore")
        tests = [stats.ttest_ind(other, base, equal_var=is_equal) for is_equal in kinds]
        intervals = [test.confidence_interval(CONFIDENCE) for test in tests]
    low, high = min(each.low for each in intervals), max(each.high for each in intervals)
    return max(float(test.pvalue) for test in tests), (float(low), float(high))


def _noise(logs: Sequence[Sequence[float]]) -> float | None:
    freedom = sum(len(side) - 1 for side in logs)
    squares = sum(statistics.variance(side) * (len(side) - 1) for side in logs if len(side) > 1)
    return math.sqrt(squares / freedom) if freedom else None


def word_of(direction: str, unit: str) -> Shown:
    """The verdict for what is shown of a figure in this unit: seconds, and what is per second, are of speed."""
    return (OF_SPEED if unit == "s" or unit.endswith("/s") else WORDS)[direction]


def needed(ratio: Ratio, difference: float) -> tuple[Needed, ...]:
    """How many rounds would be enough to show a difference, by the noise that was seen, or by NOISES where none was."""
    noises = NOISES if ratio.noise is None else (ratio.noise,)
    is_seen = ratio.noise is not None
    return tuple(Needed(noise, is_seen, rounds_needed(noise, difference)) for noise in noises)


def would_do(ratio: Ratio, difference: float) -> str:
    """The same as a sentence."""
    counts = [
        f"{each.count or 'not even a thousand'} {ratio.unit}s a side"
        + ("" if each.is_seen else f" with a noise of {100 * each.noise:g} %")
        for each in ratio.rounds_needed
    ]
    seen = " with the noise that was seen" if ratio.noise is not None else ""
    return f"to show a difference of {100 * difference:.3g} %, {' or '.join(counts)} would be enough{seen}"
