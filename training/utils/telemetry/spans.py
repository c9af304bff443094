"""What lies between two readings, and how far apart they may be for anybody to know it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from utils.telemetry.records import Window
    from utils.telemetry.series import Point

# One reading that is missed makes no hole, two do; at the half, so that one that comes late does not decide.
HOLE_INTERVALS = 2.5
# Nor do readings no further apart than those of a BMC by default: a tool may take longer than its interval.
LEAST_HOLE_MS = 5_000
# A reading comes so late where a tool takes its time: windows of an interval's length lie between two all the same.
LATE_READING_MS = 1_000
# Shorter times without a reading are nothing: a busy host reads late.
LEAST_GAP_MS = 3_000


def longest_ms(interval_ms: float, windows: Sequence[Window]) -> float:
    """How far apart two readings may be that tell of these windows together.

    Not further than the source's interval allows, nor than the windows are long, but for a late reading: of two that
    are an hour apart nobody can say which part of that hour's energy is that of a short training between them.
    """
    judged_ms = 1000 * sum(each.seconds for each in windows)
    return min(
        max(LEAST_HOLE_MS, HOLE_INTERVALS * interval_ms), max(LEAST_GAP_MS, judged_ms + LATE_READING_MS)
    )


class Span(NamedTuple):
    """Two readings next to each other, and the part between them (from `start` to `end`) that counts."""

    time_ms: int
    length_ms: int
    first: float
    last: float
    start: float
    end: float

    @property
    def inside_ms(self) -> float:
        return self.end - self.start

    @property
    def mean_inside(self) -> float:
        """The mean over the part inside, the value taken as linear between the readings."""
        middle = ((self.start + self.end) / 2 - self.time_ms) / self.length_ms
        return self.first + (self.last - self.first) * middle


def spans(
    points: Iterator[Point], window: Window, hole_ms: float, trusted_ms: float | None = None
) -> Iterator[Span]:
    """The spans that lie in the window, holes left out.

    A counter counts on through a hole: between two readings inside the window it is trusted over
    `trusted_ms`, and nowhere over more. A span that is cut by the window's edge is divided by time, which a
    hole forbids.
    """
    begin, finish = window.start_ms, window.end_ms
    whole_limit = hole_ms if trusted_ms is None else trusted_ms
    cut_limit = hole_ms if trusted_ms is None else min(hole_ms, trusted_ms)
    left, first = next(points, (0, 0.0))
    for right, last in points:
        if begin <= left < right <= finish:
            if right - left <= whole_limit:
                yield Span(left, right - left, first, last, left, right)
        elif right > begin and left < finish and left < right <= left + cut_limit:
            yield Span(left, right - left, first, last, max(left, begin), min(right, finish))
        left, first = right, last
