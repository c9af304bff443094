"""The course of a number, kept small and drawn as a line of characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

# Twice as many as the widest panel has characters: then neighbours are put together.
MOST_POINTS = 256
LEVELS, ASCII_LEVELS = "▁▂▃▄▅▆▇█", "_.-=+*#"


class Course:
    """Numbers in the order in which they came; of a long course neighbours are kept as their mean."""

    def __init__(self) -> None:
        self.points: list[float] = []
        self._pending: list[float] = []
        self._each = 1  # numbers a point

    def add(self, number: float | None) -> None:
        """The next number; one that is not finite is no part of a course."""
        if number is None or not math.isfinite(number):
            return
        self._pending.append(number)
        if len(self._pending) == self._each:
            self.points.append(_mean(self._pending))
            self._pending.clear()
        if len(self.points) == MOST_POINTS:
            self.points = shortened(self.points, MOST_POINTS // 2)
            self._each *= 2

    def line(self, width: int, ascii_only: bool = False) -> str:
        """The course in at most `width` characters, from its least to its greatest number."""
        if width < 1 or not self.points:
            return ""
        points = shortened(self.points, width)
        levels = ASCII_LEVELS if ascii_only else LEVELS
        least, span = min(points), max(points) - min(points)
        if not math.isfinite(span) or span <= 0:
            return levels[len(levels) // 2] * len(points)
        return "".join(levels[min(int((p - least) / span * len(levels)), len(levels) - 1)] for p in points)


def shortened(points: Sequence[float], count: int) -> list[float]:
    """At most `count` points: the means of parts of equal length."""
    if len(points) <= count:
        return list(points)
    edges = [round(number * len(points) / count) for number in range(count + 1)]
    return [_mean(points[start:end]) for start, end in pairwise(edges)]


def _mean(points: Sequence[float]) -> float:
    return math.fsum(point / len(points) for point in points)
