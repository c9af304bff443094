"""What several rounds come to: against worked examples and published results, and where there are too few."""

from __future__ import annotations

import math
import tracemalloc

import pytest

from run_benchmarks.comparison.statistics import (
    olympic_mean,
    rounds_needed,
    summarise,
)

# Ten times to target, s, of which the mean without the fastest and the slowest is 5359.6 s.
TIMES = (3795, 4683, 3807, 5594, 6473, 5576, 6484, 4683, 6481, 5580)


def test_the_mean_without_the_fastest_and_the_slowest() -> None:
    assert round(olympic_mean(TIMES).value or 0, 1) == 5359.6


def test_one_round_that_did_not_converge_is_the_slowest_and_two_make_the_set_invalid() -> None:
    slowest_failed = [None if time == max(TIMES) else time for time in TIMES]
    assert olympic_mean(slowest_failed) == olympic_mean(TIMES)
    invalid = olympic_mean([None, None, *TIMES])
    assert invalid.value is None and "2 of 12 rounds did not converge" in invalid.reason
    assert olympic_mean([1.0, 2.0]).value is None
    assert olympic_mean([1.0, 2.0, None]).value == 2.0


def test_a_summary_has_location_spread_and_interval() -> None:
    summary = summarise([float(time) for time in TIMES])
    assert (summary.count, summary.median, summary.mean) == (10, 5578.0, 5315.6)
    assert summary.sd == pytest.approx(1036.37, abs=0.01)
    assert summary.cv == pytest.approx(0.19497, abs=1e-5)
    assert summary.interval is not None and summary.no_interval == ""
    low, high = summary.interval
    # Student's interval, for comparison: 4574.2..6057.0
    assert low == pytest.approx(4574.2, abs=100) and high == pytest.approx(6057.0, abs=120)
    assert summarise([float(time) for time in TIMES]) == summary, "the same values, the same interval"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([5.0], "there are 1"),
        ([1.0, 2.0, 3.0, 4.0, 5.0], "there are 5"),
        ([2.0] * 10, "do not differ"),
        ([0.0] * 10, "do not differ"),
    ],
)
def test_without_an_interval_the_reason_stands_there(values: list[float], reason: str) -> None:
    summary = summarise(values)
    assert summary.interval is None and reason in summary.no_interval
    assert (summary.sd is None) == (len(values) == 1)


def test_values_that_are_nearly_one_have_an_interval_of_numbers_or_none() -> None:
    summary = summarise([1.0] * 20 + [1.1])
    assert summary.interval is None or all(map(math.isfinite, summary.interval))


def test_very_many_rounds_do_not_fill_the_memory() -> None:
    tracemalloc.start()
    summary = summarise([100 + (number * 7919 % 1000) / 100 for number in range(1500)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert summary.interval and summary.interval[1] - summary.interval[0] < 1 and peak < 60 * 2**20


def test_of_a_mean_of_about_nothing_there_is_no_coefficient_of_variation() -> None:
    assert summarise([1e99, -1e99, 1e-300]).cv is None


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
def test_what_is_no_value_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="not finite"):
        summarise(values)


def test_so_many_rounds_would_do() -> None:
    """Against G*Power 3.1: two-sided t test of two means, alpha 0.05, power 0.95."""
    assert rounds_needed(math.log(1.05), 0.05) == 27  # effect size 1: 27 a side
    assert rounds_needed(2 * math.log(1.05), 0.05) == 105  # effect size 0.5: 105 a side
    assert rounds_needed(0.01, 0.05) == 3
    assert rounds_needed(0.0, 0.05) == 3
    assert rounds_needed(10.0, 0.05) is None
