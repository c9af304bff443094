"""Times and rates of a script of a case's own, where the clock of rank 0's node was set: it may have timed by that.

The shared driver and a search time by a clock that nobody sets. A script's events and its own figures need not be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from run_benchmarks.results.clock_doubts import WatchedClock, when_set
from run_benchmarks.results.clocks import NodeClock
from run_benchmarks.results.consistency import NOTED_FACTOR, is_a_multiple
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.power import CLOCK_SLACK, CLOCK_SLACK_S, training_window
from run_benchmarks.results.round_result import Observation
from utils.events import Event, EventName
from utils.figure_names import OF_PEAK
from utils.figures import Figure
from utils.records import Stage
from utils.telemetry.records import Window

LEAST_PART = 0.001  # of a time, that a step of its clock must be to matter
BORNE_OUT = 10.0  # so many times nearer to the monotonic clock than to the wall clock a time is by the former
# Images are loaded and packages installed while the ranks run; a training that is less than a half beside more is odd.
STARTING_S, LEAST_SHARE_OF_RANKS = 60.0, 0.5
_PARTS = ("init_time", "raw_train_time")  # of a script's time, which it may tell as e2e_time
TRAINED = (
    *("raw_train_time", "no_eval_time", "pure_compute_time"),
    *("p_whole", "p_train", "p_core", "tokens_per_second", "MFU"),
)
_TIMED_UNIT = re.compile(r"^([mun]|µ)?s$|^(min|h)$|/(s|min|h)(/|$)")  # of a case's own figures

_Span = tuple[int, int]


@dataclass(frozen=True)
class RankClock:
    """The clock of rank 0's node while it ran: by its events, by its telemetry, and against the controller's.

    host: the node's. met: the evaluation that met the target. moved_s, has_both_ends: see `NodeClock`; round_s: what
    the round took.
    """

    host: str
    events: Sequence[Event]
    met: Event | None
    watched: WatchedClock
    moved_s: float
    round_s: float
    has_both_ends: bool = False

    @property
    def is_seen(self) -> bool:
        """Whether somebody would have seen it being set during the training."""
        window = self._training
        is_watched = isinstance(window, Window) and self._is_watched((window.start_ms, window.end_ms))
        return self.has_both_ends or is_watched

    def when_set(self, begin: EventName, end: EventName | Event | None) -> str:
        """That it was set between two events, or may have been; or nothing."""
        span = self._span(begin, end)
        steps = [step for step in self.watched.steps if not span or self._matters(step.moved_ms, span)]
        windows = [Window(*span)] if span else None
        if isinstance(self._training, Window) and (step := when_set(steps, windows, self._training)):
            return step
        if span and (self._is_watched(span) or self._was_set_outside(span)):
            return ""
        if abs(self.moved_s) > CLOCK_SLACK_S + LEAST_PART * self.round_s:
            return (
                f"its clock moved by {self.moved_s:+.4g} s against the controller's while the round went on"
            )
        start, stop = self._at.get(EventName.TRAIN_START), self._at.get(EventName.TRAIN_END)
        return f"by its clock {self._training}" if start and stop and stop <= start else ""

    def bears_out(self, trained_s: float | None) -> bool:
        """Whether a time of the training is that of the monotonic clock, and not that of the one that was set."""
        if trained_s is None or not isinstance(self._training, Window):
            return False
        span = (self._training.start_ms, self._training.end_ms)
        steps = [step.moved_ms / 1000 for step in self.watched.steps if step.touches(*span)]
        moved_s = sum(steps) if self._is_watched(span) else self.moved_s
        by_wall_clock = self._training.seconds
        return abs(trained_s - (by_wall_clock - moved_s)) * BORNE_OUT < abs(trained_s - by_wall_clock)

    def contradiction(self, trained_s: float | None) -> str:
        """That the time trained is far from what the events say, which nothing seen of the clock explains; or empty."""
        if trained_s is None or not isinstance(self._training, Window):
            return ""
        window_s = self._training.seconds
        first_ms = next(each.time_ms for each in self.events if each.name == EventName.TRAIN_START)
        whole_s = (self._training.end_ms - (first_ms or 0)) / 1000  # a script may begin the training anew
        are_far = all(
            is_a_multiple(min(trained_s, each), max(trained_s, each), NOTED_FACTOR)
            for each in (window_s, whole_s)
        )
        if not are_far or self.bears_out(trained_s):
            return ""
        return (
            f"raw_train_time is {trained_s:.6g} s, but TRAIN_START to TRAIN_END took {window_s:.6g} s, "
            "which nothing that was seen of the clock explains"
        )

    @cached_property
    def _training(self) -> Window | str:
        return training_window(self.events)

    @cached_property
    def _at(self) -> Mapping[str, int]:
        return {event.name: event.time_ms for event in self.events}

    def _span(self, begin: EventName, end: EventName | Event | None) -> _Span | None:
        """The time between both, whichever comes first: set back, a clock tells it so."""
        start = next((event.time_ms for event in self.events if event.name == begin), None)
        stop = end.time_ms if isinstance(end, Event) else self._at.get(end) if end else None
        return (min(start, stop), max(start, stop)) if start and stop else None

    def _is_watched(self, span: _Span) -> bool:
        if self.watched.watched_ms is None:
            return False
        first, last = self.watched.watched_ms
        slack_ms = 1000 * CLOCK_SLACK_S + CLOCK_SLACK * (span[1] - span[0])
        return first <= span[0] + slack_ms and span[1] <= last + slack_ms

    def _was_set_outside(self, span: _Span) -> bool:
        """Whether what moved was another controller's clock: set by so much, this one would tell a longer time."""
        return abs(self.moved_s) > 2 * self.round_s and span[1] - span[0] <= 1000 * self.round_s

    @staticmethod
    def _matters(moved_ms: int, span: _Span) -> bool:
        return abs(moved_ms) > LEAST_PART * (span[1] - span[0])


def clock_of(
    events: Sequence[Event], met: Event | None, watched: WatchedClock | None, seen: Observation
) -> RankClock:
    """That of rank 0's node in a round."""
    clock = next(iter(seen.clocks), NodeClock())
    host, round_s = next(iter(seen.hosts), "rank 0"), seen.time_s or 0.0
    return RankClock(
        host, events, met, watched or WatchedClock(), clock.moved_s, round_s, clock.has_both_ends
    )


def doubted_times(
    case: PlannedCase, clock: RankClock, figures: Mapping[str, Figure], own: Mapping[str, Figure]
) -> dict[str, str]:
    """Figure -> why it is doubtful, of times and rates that have a value; `own` are those that the case defines.

    Of the shared driver and of a search, whose clock nobody sets, only where the time trained contradicts the events
    by a clock that somebody watched.
    """
    raw, is_script = figures.get("raw_train_time"), not case.uses_driver and not case.roles
    trained_s = raw.value if raw else None
    doubts = dict.fromkeys(TRAINED, clock.contradiction(trained_s) if is_script or clock.is_seen else "")
    if is_script:
        doubts |= _timed_by_script(clock, trained_s, own)
    there = {name for name, each in figures.items() if each.value is not None}
    return {name: f"{clock.host}: {why}" for name, why in doubts.items() if why and name in there}


def _timed_by_script(clock: RankClock, trained_s: float | None, own: Mapping[str, Figure]) -> dict[str, str]:
    """Figure -> that the clock was set by which a script may have timed it."""
    trained = clock.when_set(EventName.TRAIN_START, EventName.TRAIN_END)
    whole = clock.when_set(EventName.INIT_START, EventName.FINISHED) or trained
    set_when = {
        "e2e_time": whole,
        "init_time": clock.when_set(EventName.INIT_START, EventName.INIT_END),
        "time_to_target": clock.when_set(EventName.TRAIN_START, clock.met or EventName.TRAIN_END),
        **dict.fromkeys(TRAINED, "" if clock.bears_out(trained_s) else trained),
        **{
            name: whole
            for name, each in own.items()
            if name.endswith(OF_PEAK) or _TIMED_UNIT.search(each.unit)
        },
    }
    return {name: f"{why}, and its script may have timed this by it" for name, why in set_when.items() if why}


def unproved_times(doubts: Mapping[str, str]) -> str:
    """What of the times is not proved, of all that `doubted_times` found, and the first reason."""
    return f"not proved of {', '.join(doubts)}: {next(iter(doubts.values()))}" if doubts else ""


def short_of_ranks(case: PlannedCase, figures: Mapping[str, Figure], seen: Observation) -> list[str]:
    """That a script took less than half of the time for which the controller saw its ranks run, by its own word."""
    times = {name: each.value for name, each in figures.items() if each.value}
    names = ["e2e_time"] if "e2e_time" in times else [*_PARTS] if "raw_train_time" in times else []
    names = [name for name in names if name in times]
    said_s, ran_s = sum(times[name] for name in names), _watched_s(seen)
    is_odd = ran_s - said_s > STARTING_S and 0 < said_s < LEAST_SHARE_OF_RANKS * ran_s
    if case.uses_driver or case.roles or not is_odd:
        return []
    what = f"{' + '.join(names)} is {said_s:.6g} s"
    return [
        f"{what}, but its ranks ran for {ran_s:.6g} s by the controller's clock: nothing tells of the rest"
    ]


def _watched_s(seen: Observation) -> float:
    """For how long the controller saw the ranks run, at least: not while it was gone, nor while they stood still."""
    unknown_s = seen.unwatched_s + (seen.allocation.suspended_s if seen.allocation else 0.0)
    return max(0.0, seen.times.get(Stage.TRAIN.value, 0.0) - unknown_s)
