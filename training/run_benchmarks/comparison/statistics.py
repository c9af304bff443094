"""What several rounds of a figure come to: location, spread, an interval, MLPerf's mean, and how many rounds would do.

Which methods, and how far each can be trusted with few rounds: docs/comparing.md.
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.table import MARK, NOT_MEASURED
from utils.numbers import digits_apart, shown

CONFIDENCE = 0.95
# Of fewer rounds a bootstrap interval covers the mean far more seldom than it says.
FEWEST_FOR_INTERVAL = 6
FEWEST_ROUNDS = 3  # a side; of two the spread is hardly known
MOST_ROUNDS = 1000
POWER = 0.95  # with so many rounds a difference would be shown so often
RESAMPLES = 9999
MOST_DRAWN = 1_000_000  # values at once, 8 bytes each; a few rounds are drawn in one go
ALIKE = 1e-9  # values nearer to each other than this part of them do not vary
HEADINGS = ("rounds", "median", "mean", "sd", "cv", f"{CONFIDENCE:.0%} interval of the mean")


@dataclass(frozen=True)
class Summary:
    """What values of one figure come to, in its unit; what too few of them leave open is None.

    sd: standard deviation of a sample (n - 1). cv: sd / mean. interval: of the mean, with CONFIDENCE.
    no_interval: why there is none.
    """

    count: int
    median: float
    mean: float
    sd: float | None
    cv: float | None
    interval: tuple[float, float] | None
    no_interval: str = ""

    def cells(self, digits: int = 4) -> tuple[str, ...]:
        """What stands in a table below HEADINGS."""
        numbers = [
            NOT_MEASURED if each is None else shown(each, digits)
            for each in (self.median, self.mean, self.sd)
        ]
        cv = NOT_MEASURED if self.cv is None else f"{100 * self.cv:.2g} %"
        return (str(self.count), *numbers, cv, interval_text(self.interval))


@dataclass(frozen=True)
class OlympicMean:
    """MLPerf's mean of a set of rounds without the fastest and the slowest, s; None where `reason` says why.

    caveat: why a time of the set is marked, and the mean with it; or empty.
    """

    value: float | None
    reason: str = ""
    caveat: str = ""

    def text(self) -> str:
        """The mean, with its mark."""
        return NOT_MEASURED if self.value is None else shown(self.value, 5) + (MARK if self.caveat else "")

    def note(self, whose: str) -> str:
        """Why there is none, or why it is marked; or nothing."""
        if self.reason:
            what = "(time to target without the fastest and the slowest)"
            return f"no MLPerf mean of {whose} {what}: {self.reason}"
        return f"{MARK} MLPerf mean of {whose}: {self.caveat}" if self.caveat else ""


def summarise(values: Sequence[float]) -> Summary:
    """Location, spread and interval of at least one finite value.

    Raises:
        ValueError: there is no value, or one that is not finite.
    """
    if not values or not all(map(math.isfinite, values)):
        raise ValueError(f"not finite values, at least one: {values}")
    mean = statistics.fmean(values)
    sd = statistics.stdev(values) if len(values) > 1 else None
    cv = sd / abs(mean) if sd is not None and abs(mean) > ALIKE * sd else None
    interval, reason = _interval(values)
    return Summary(len(values), statistics.median(values), mean, sd, cv, interval, reason)


def olympic_mean(times: Sequence[float | None]) -> OlympicMean:
    """The arithmetic mean of times to target, s, without the fastest and the slowest.

    None is a round that did not converge: it counts as the slowest, and two make the set invalid (MLPerf Training
    rules, "Benchmark results").
    """
    failed = sum(time is None for time in times)
    if failed > 1:
        return OlympicMean(None, f"{failed} of {len(times)} rounds did not converge: the set is invalid")
    if len(times) < FEWEST_ROUNDS:
        return OlympicMean(None, f"{FEWEST_ROUNDS} rounds are the fewest, there are {len(times)}")
    kept = sorted(math.inf if time is None else time for time in times)[1:-1]
    return OlympicMean(statistics.fmean(kept))


def olympic_mean_of(results: Sequence[RoundResult], lost: int) -> OlympicMean | None:
    """The same of all rounds of a case, whatever kept one from converging; None where none has a time to target.

    Args:
        lost: rounds that were begun and have no result (`lost_rounds`).
    """
    figures = [result.figures.get("time_to_target") for result in results]
    times = [
        figure.value if figure and result.verdict.is_success else None
        for figure, result in zip(figures, results, strict=True)
    ]
    mean = olympic_mean([*times, *[None] * lost]) if any(times) else None
    caveats = dict.fromkeys(figure.caveat for figure in figures if figure and figure.value is not None)
    is_marked = mean is not None and mean.value is not None
    return replace(mean, caveat="; ".join(filter(None, caveats))) if mean and is_marked else mean


def interval_text(interval: tuple[float, float] | None, *others: float) -> str:
    """Its ends, with as many digits as show that they differ, also from `others`."""
    if interval is None:
        return NOT_MEASURED
    digits = digits_apart([*interval, *others], 4)
    return " .. ".join(shown(end, digits) for end in interval)


def vary(values: Sequence[float]) -> bool:
    """Whether the values differ by more than the last digits of a computation."""
    low, high = min(values), max(values)
    return high - low > ALIKE * max(abs(low), abs(high))


def rounds_needed(log_sd: float, difference: float) -> int | None:
    """The rounds a side with which a difference would be shown with POWER; None where MOST_ROUNDS would not do.

    Args:
        log_sd: standard deviation of the logarithms of a side's values.
        difference: as a part of the base, e.g. 0.05.

    The power of the t test of two sides, from the noncentral t distribution (Cohen, Statistical Power Analysis, 2.3).
    """
    import numpy as np
    from scipy import stats

    rounds = np.arange(FEWEST_ROUNDS, MOST_ROUNDS + 1)
    if log_sd <= ALIKE:
        return FEWEST_ROUNDS
    freedom = 2 * rounds - 2
    shift = math.log1p(difference) / (log_sd * np.sqrt(2 / rounds))
    critical = stats.t.ppf((1 + CONFIDENCE) / 2, freedom)
    enough = stats.nct.sf(critical, freedom, shift) >= POWER
    return int(rounds[enough.argmax()]) if enough.any() else None


def _interval(values: Sequence[float]) -> tuple[tuple[float, float] | None, str]:
    """The BCa bootstrap interval of the mean, or why there is none.

    Its level is expanded for few values, as in Hesterberg (2015), What Teachers Should Know About the Bootstrap, 4.3.
    """
    count = len(values)
    if count < FEWEST_FOR_INTERVAL:
        return None, f"{FEWEST_FOR_INTERVAL} rounds are the fewest for an interval, there are {count}"
    if not vary(values):
        return None, "the rounds do not differ"
    import numpy as np
    from scipy import stats

    quantile = math.sqrt(count / (count - 1)) * stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)
    level = 2 * stats.norm.cdf(quantile) - 1
    with warnings.catch_warnings():  # of values that are nearly all the same; what comes is looked at below
        warnings.simplefilter("ignore")
        result = stats.bootstrap(
            (values,),
            np.mean,
            n_resamples=RESAMPLES,
            confidence_level=level,
            method="BCa",
            batch=max(1, MOST_DRAWN // count),
            rng=np.random.default_rng(0),  # the same values have the same interval, always
        )
    low, high = map(float, result.confidence_interval)
    if not (math.isfinite(low) and math.isfinite(high)):
        return None, "nearly all rounds have one value"
    return (low, high), ""
