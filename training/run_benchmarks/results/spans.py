"""What lies between two readings, and how far apart they may be for anybody to know it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from utils.telemetry.records import Window
    from utils.telemetry.series import Point

# One reading that is missed makes no hole, two do; at the half, so that one that comes late does not decide.
HOLE_INTERVALS = 2.5
# Nor do readings no further apart than those of a BMC by default: a tool may take longer than its interval.
LEAST_HOLE_MS = 5_000
# So late comes a reading where a tool takes its time, or by an interval: between two lies a window of an interval then.
LATE_READING_MS = 1_000
# An idle time of an interval is a little shorter where the first reading came late.
NEARLY_AN_INTERVAL = 0.9
# Shorter times without a reading are nothing: a busy host reads late.
LEAST_GAP_MS = 3_000


def longest_ms(interval_ms: float, window: Window) -> float:
    """How far apart two readings may be that tell of the window.

    Not further than the source's interval allows, nor than the window is long, but for a late reading: of two that are
    an hour apart nobody can say which part of that hour's energy is that of a short training between them.
    """
    length_ms = window.seconds * 1000
    late_ms = min(interval_ms, LATE_READING_MS) if length_ms >= NEARLY_AN_INTERVAL * interval_ms else 0.0
    return min(max(LEAST_HOLE_MS, HOLE_INTERVALS * interval_ms), length_ms + late_ms)


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

    @property
    def unsure(self) -> float:
        """By so much `mean_inside` is off if the value changed just at an edge that cuts the span."""
        if self.inside_ms == self.length_ms:
            return 0.0
        inner = [self.last] * (self.time_ms < self.start)
        inner += [self.first] * (self.end < self.time_ms + self.length_ms)
        return max(abs(value - self.mean_inside) for value in inner)


def spans(points: Iterator[Point], window: Window, hole_ms: float) -> Iterator[Span]:
    """The spans that lie in the window, holes left out."""
    left, first = next(points, (0, 0.0))
    for right, last in points:
        if right > window.start_ms and left < window.end_ms and left < right <= left + hole_ms:
            start, end = max(left, window.start_ms), min(right, window.end_ms)
            yield Span(left, right - left, first, last, start, end)
        left, first = right, last
