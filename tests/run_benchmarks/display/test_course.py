"""The course of a number as a line of characters."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from run_benchmarks.display.course import ASCII_LEVELS, LEVELS, MOST_POINTS, Course


def course_of(*numbers: float) -> Course:
    course = Course()
    for number in numbers:
        course.add(number)
    return course


def test_the_least_is_lowest_and_the_greatest_is_highest() -> None:
    assert course_of(0, 1, 2, 3, 4, 5, 6, 7).line(20) == LEVELS
    assert course_of(*range(len(ASCII_LEVELS))).line(20, ascii_only=True) == ASCII_LEVELS
    assert course_of(5.0, 1.0).line(20) == "█▁"


def test_a_long_course_is_the_mean_of_its_parts() -> None:
    assert course_of(1, 3, 7, 9).line(2) == "▁█"
    falling = course_of(*(10.0 - number / 1000 for number in range(10_000)))
    assert len(falling.points) <= MOST_POINTS
    assert falling.line(8) == LEVELS[::-1]


@pytest.mark.parametrize("numbers", [(), (math.nan,), (math.inf, -math.inf), (None,)])
def test_what_is_no_number_is_no_course(numbers: tuple[float, ...]) -> None:
    assert course_of(*numbers).line(20) == ""


def test_one_level_is_in_the_middle() -> None:
    assert course_of(2.0, 2.0).line(20) == "▅▅"
    assert course_of(2.0, 2.0).line(0) == ""


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(), max_size=600), st.integers(1, 80))
def test_a_line_fits_whatever_comes(numbers: list[float], width: int) -> None:
    line = course_of(*numbers).line(width)
    assert len(line) <= width and set(line) <= set(LEVELS)
