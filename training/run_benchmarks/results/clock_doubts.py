"""What is doubtful because a clock was set while a node's telemetry was read: when its readings were taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from utils.telemetry.clock_steps import ClockStep
from utils.telemetry.records import Measurement, Telemetry, Window

CLOCK_WAS_SET = "clock was set"  # the name of that doubt
BY_THE_CLOCK = "what was sampled by that clock is doubtful, in figures of power, of phases and of devices"


@dataclass(frozen=True)
class WatchedClock:
    """A node's own clock, as its telemetry saw it: where it was set, and from when to when it was watched."""

    steps: tuple[ClockStep, ...] = ()
    watched_ms: tuple[int, int] | None = None


def watched_clock(telemetry: Telemetry) -> WatchedClock:
    """The clock by which the node tells its events."""
    steps = (step for step in telemetry.clock_steps if not step.of_controller)
    return WatchedClock(tuple(steps), telemetry.clock_watched_ms)


def clock_was_set(
    telemetry: Telemetry, source: str, training: Window, *, is_of_several: bool
) -> Iterator[tuple[str, str]]:
    """That a clock was set by which the node's times are told, where that matters; `source` is that of its power."""
    time = None if is_of_several else [Window(0, training.end_ms)]
    step = when_set(steps_of(telemetry, source), time, training)
    if step:
        yield CLOCK_WAS_SET, f"{step}: {BY_THE_CLOCK}"


def steps_of(telemetry: Telemetry, source: str) -> list[ClockStep]:
    """Where the clocks were set by which the node tells its events, and this source its readings."""
    is_of_controller = source in telemetry.of_controller
    return [step for step in telemetry.clock_steps if is_of_controller or not step.of_controller]


def with_doubts(
    measured: Mapping[str, Measurement],
    windows: Mapping[str, Sequence[Window] | None],
    steps: Sequence[ClockStep],
    training: Window,
) -> dict[str, Measurement]:
    """What was measured, with a doubt where a clock was set in its time.

    windows: of each figure those that it is of; None where it is doubtful whenever the clock was set.
    """

    def doubted(name: str, each: Measurement) -> Measurement:
        doubts = filter(None, (each.doubt, when_set(steps, windows[name], training)))
        return replace(each, doubt="; ".join(doubts))

    return {name: doubted(name, each) for name, each in measured.items()}


def when_set(steps: Sequence[ClockStep], windows: Sequence[Window] | None, training: Window) -> str:
    """By how much a clock was set first in these windows, or at any time, and when; or nothing."""
    there = (
        step
        for step in steps
        if windows is None or any(step.touches(window.start_ms, window.end_ms) for window in windows)
    )
    step = min(there, key=lambda each: each.ends, default=None)
    if step is None:
        return ""
    whose = "the controller's" if step.of_controller else "its"
    since_start = (step.before_ms - training.start_ms) / 1000
    when = f"{abs(since_start):.4g} s {'after' if since_start >= 0 else 'before'} TRAIN_START"
    moved = f"{step.moved_ms / 1000:+.4g} s"
    return f"{whose} clock was set by {moved}, or its machine slept so long, about {when}"
