"""Where the clock by which telemetry is stamped was set: it moves there against the monotonic one, that nobody sets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

# Between the two clocks of one stamp a busy machine may do something else for a moment. Both are slewed alike.
LEAST_STEP_MS, OF_A_GAP = 200.0, 0.001
MOST_STEPS = 100
# So many of the latest are looked at for the same step by another source: more than a node has.
MOST_SOURCES = 32


@dataclass(frozen=True)
class ClockStep:
    """That a clock was set, or that its machine slept, somewhere between two readings of a source.

    before_ms, after_ms: their times on the round's time line, which has a step here too. moved_ms: by how much, + is
    forward. of_controller: whether it is the controller's clock.
    """

    before_ms: int
    after_ms: int
    moved_ms: int
    of_controller: bool = False

    @property
    def ends(self) -> tuple[int, int]:
        """The earliest and the latest time that it told between both: set back, it told some of them twice."""
        return (
            min(self.before_ms - self.back_ms, self.after_ms),
            max(self.after_ms + self.back_ms, self.before_ms),
        )

    @property
    def back_ms(self) -> int:
        """By how much it was set back."""
        return max(0, -self.moved_ms)

    def up_to(self, other: ClockStep) -> ClockStep:
        """One that stands for both, and for whatever was between."""
        ends = (*self.ends, *other.ends)
        return replace(self, before_ms=min(ends) + self.back_ms, after_ms=max(ends) - self.back_ms)

    def touches(self, start_ms: float, end_ms: float) -> bool:
        """Whether it may be within these times."""
        return self.ends[0] <= end_ms and self.ends[1] >= start_ms


class _Stamp(NamedTuple):
    """When a source was read: by its clock, on the round's time line, and by the monotonic clock."""

    time_ms: int
    placed_ms: int
    monotonic_ms: int

    def moved_since(self, other: _Stamp) -> int:
        """By how much the clock moved against the monotonic one since then, in ms; 0 for what is no step."""
        passed = self.monotonic_ms - other.monotonic_ms
        moved = self.time_ms - other.time_ms - passed
        return moved if abs(moved) > LEAST_STEP_MS + OF_A_GAP * passed else 0


class _Seen(NamedTuple):
    """A step as a source saw it, between two times of the monotonic clock."""

    step: ClockStep
    start_ms: int
    end_ms: int

    @property
    def took_ms(self) -> int:
        """So exactly it is known when it was."""
        return self.end_ms - self.start_ms

    def is_of(self, other: _Seen) -> bool:
        """Whether both may be the same step, seen by two sources. A clock that is set tells the same time twice."""
        is_as_far = abs(self.step.moved_ms - other.step.moved_ms) <= LEAST_STEP_MS
        return is_as_far and self.start_ms < other.end_ms and other.start_ms < self.end_ms


@dataclass
class _Source:
    """The last stamp that is beyond doubt, and the one after it where it shows a step, which the next must bear out."""

    last: _Stamp
    unsure: _Stamp | None = None


@dataclass
class ClockSteps:
    """Takes the stamps of all sources of one clock, each source's in order, and keeps the steps alone.

    watched_ms: the first and the last time that it told, on the round's time line.
    """

    of_controller: bool = False
    watched_ms: tuple[int, int] | None = None
    _seen: list[_Seen] = field(default_factory=list)
    _is_full: bool = False
    _sources: dict[str, _Source] = field(default_factory=dict)

    def begin(self, source: str) -> None:
        """Its monitor was started: perhaps on another machine, whose monotonic clock tells other times."""
        state = self._sources.pop(source, None)
        if state and state.unsure:
            self._add(state.last, state.unsure)

    def take(self, source: str, time_ms: int, placed_ms: int, monotonic_ms: int | None) -> None:
        """One more; versions before December 2026 wrote no monotonic time."""
        if monotonic_ms is None:
            return
        self.watched_ms = (self.watched_ms[0] if self.watched_ms else placed_ms, placed_ms)
        stamp = _Stamp(time_ms, placed_ms, monotonic_ms)
        state = self._sources.setdefault(source, _Source(stamp))
        if monotonic_ms <= (state.unsure or state.last).monotonic_ms:
            self.begin(source)  # the machine was started anew, or it is no such clock
            self._sources[source] = _Source(stamp)
        elif not stamp.moved_since(state.last):
            state.last, state.unsure = stamp, None  # if there was one between, it came late to its stamp
        elif state.unsure is None:
            state.unsure = stamp
        else:
            self._add(state.last, state.unsure)
            is_borne_out = not stamp.moved_since(state.unsure)
            state.last, state.unsure = (stamp, None) if is_borne_out else (state.unsure, stamp)

    def found(self) -> tuple[ClockStep, ...]:
        """All of them, each by the source that knows best when it was. Of a last reading nothing bears it out."""
        for source in list(self._sources):
            self.begin(source)
        return tuple(each.step for each in self._seen)

    def _add(self, last: _Stamp, stamp: _Stamp) -> None:
        step = ClockStep(last.placed_ms, stamp.placed_ms, stamp.moved_since(last), self.of_controller)
        if self._is_full:
            latest = self._seen[-1]  # of very many the last one stands for the rest
            self._seen[-1] = latest._replace(step=latest.step.up_to(step))
            return
        seen = _Seen(step, last.monotonic_ms, stamp.monotonic_ms)
        for place in range(max(0, len(self._seen) - MOST_SOURCES), len(self._seen)):
            other = self._seen[place]
            if seen.is_of(other):  # the source that is read more often knows better when it was
                self._seen[place] = min(other, seen, key=lambda each: each.took_ms)
                return
        self._seen.append(seen)
        self._is_full = len(self._seen) == MOST_STEPS
