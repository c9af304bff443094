"""Whether the pace of a training still changes in its second half, beyond what chance does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import median

FEWEST_READINGS = 40
# Means of so many equal parts of the second half are compared: those of neighbouring steps are not independent.
PARTS = 20
# Two-sided p of 0.001 (Mann 1945, Kendall 1975): of a thousand steady rounds one is named, if it is 5 % as well.
LEAST_Z = 3.29


def lasting_change(readings: Sequence[tuple[float, float]]) -> float | None:
    """By which part of its median the rate changes over the second half; 0 where that may be chance.

    By Mann's and Kendall's test, and Theil's and Sen's slope. None where there is too little to tell.

    Args:
        readings: time in ms, rate; in order of time.
    """
    if len(readings) < FEWEST_READINGS:
        return None
    begin, end = (readings[0][0] + readings[-1][0]) / 2, readings[-1][0]
    parts: list[list[float]] = [[] for _ in range(PARTS)]
    for time_ms, rate in readings:
        if begin < time_ms <= end:
            parts[min(PARTS - 1, int((time_ms - begin) / (end - begin) * PARTS))].append(rate)
    if not all(parts):  # a log with a hole in it, or steps of very different length
        return None
    rates = [median(part) for part in parts]
    pairs = list(combinations(enumerate(rates), 2))
    rises = sum((later > earlier) - (later < earlier) for (_, earlier), (_, later) in pairs)
    deviation = math.sqrt(PARTS * (PARTS - 1) * (2 * PARTS + 5) / 18)
    if (abs(rises) - 1) / deviation < LEAST_Z:
        return 0.0
    slope = median((later - earlier) / (j - i) for (i, earlier), (j, later) in pairs)
    middle = median(rates)
    return slope * (PARTS - 1) / middle if middle > 0 else None
