"""Numbers as they are shown, and quotients that are none."""

from __future__ import annotations

import pytest

from utils.numbers import difference, digits_apart, rate, shown


@pytest.mark.parametrize(("count", "seconds"), [(None, 1.0), (1, None), (1, 0.0), (1, -1.0)])
def test_rate_without_a_time(count: float | None, seconds: float | None) -> None:
    assert rate(count, seconds) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00038, "0.000380"),
        (0.0, "0"),
        (-0.0, "0"),
        (27, "27"),
        (27.04, "27.0"),
        (99.96, "100"),
        (999.96, "1000"),
        (3858.9, "3859"),
        (123456789.2, "123456789"),
        (-3.456, "-3.46"),
        (1e-6, "1.00e-06"),
        (2e15, "2.00e+15"),
        (5e-324, "4.94e-324"),
    ],
)
def test_three_digits_that_say_something_and_all_before_the_point(value: float, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("values", "digits"),
    [([0.9998, 0.99985, 1.0], 4), ([0.99998, 1.0], 5), ([1000.2, 1000.0], 5), ([1.0, 1 + 1e-15], 4), ([], 4)],
)
def test_as_many_digits_as_tell_values_apart(values: list[float], digits: int) -> None:
    assert digits_apart(values, 4) == digits


def test_as_many_digits_as_a_figure_wants() -> None:
    assert (shown(0.71149, 4), shown(1, 4), shown(0.99996, 4)) == ("0.7115", "1", "1.000")


@pytest.mark.parametrize(
    ("whole", "part", "left"),
    [(6500.0, 6500.000000000007, 0.0), (6500.0, 6499.99, 0.01), (0.0, 0.0, 0.0), (5.0, 7.0, -2.0)],
)
def test_a_difference_below_the_rounding_of_its_terms_is_none(whole: float, part: float, left: float) -> None:
    assert difference(whole, part) == pytest.approx(left, rel=1e-6, abs=0)
