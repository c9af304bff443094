"""Whether a result adds up: with itself, with rank 0's events, with the plan, and with the controller's own clock.

A verdict is earned: what contradicts itself is no result. What a case does not report is not held against a script of
its own; the shared driver reports all of it. Who wants to deceive can write lines that add up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from run_benchmarks.results.legacy_figures import in_present_names
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.power import CLOCK_SLACK, CLOCK_SLACK_S, training_window
from run_benchmarks.results.quality import TOLERANCE, Quality, is_true
from run_benchmarks.results.round_result import MEASURE
from utils.checkpoints import continued_of
from utils.events import Event, EventName
from utils.figures import Figure
from utils.numbers import number_in
from utils.parameters import AUTO, PRECISIONS

# Logs round: times may differ by as much as a log's last digit of them.
ROUNDED_S = 0.01
# A wall clock that was set meanwhile explains that TRAIN_START..TRAIN_END is not the time trained, which deserves a
# note; but not that it is so many times that, in a training that is short beside the step of the clock.
CLOCK_SET_S, NOTED_FACTOR, CLOCK_FACTOR = 2.0, 2.0, 20.0
TIMES = (
    *("e2e_time", "init_time", "raw_train_time", "no_eval_time", "pure_compute_time", "time_to_target"),
    *("eval_time", "checkpoint_time", "data_wait_time", "measure_time"),
)
MEMORY, ALL_MEMORY = ("mem_allocated_bytes", "mem_reserved_bytes"), "mem_total_bytes"
COUNTS = ("num_trained_tokens", "model_flops_per_sample", *MEMORY, ALL_MEMORY)
# It is less the longest wait of all ranks, whose trainings do not begin and end at one moment.
LEAST = {"pure_compute_time": -0.1}
WORK = ("global_steps", "num_trained_samples")
RATES = {"p_whole": "raw_train_time", "p_train": "no_eval_time", "p_core": "pure_compute_time"}
# Where in a run an event of the driver stands; those with the same number have no order.
PLACES = dict.fromkeys(EventName, 2) | {
    EventName.INIT_START: -1,
    **dict.fromkeys((EventName.HOOKS, EventName.INIT_EVALUATION, EventName.INIT_END), 0),
    EventName.TRAIN_START: 1,
    EventName.TRAIN_END: 3,
    EventName.FINISHED: 4,
}
ONCE = (EventName.TRAIN_START, EventName.TRAIN_END)
OWED = (EventName.TRAIN_START, EventName.EVALUATE, EventName.TRAIN_END)


def contradictions(
    case: PlannedCase,
    events: Sequence[Event],
    facts: Mapping[str, Any],
    figures: Mapping[str, Figure],
    round_s: float | None,
) -> list[str]:
    """What does not add up in a round that ended well, each with both values; nothing where all does.

    Args:
        events: global rank 0's; facts: the values of its FINISHED.
        round_s: what the round took by the controller's clock, None where that is not known.
    """
    report = _Report(case, events, in_present_names(facts, case.parameters), figures, round_s)
    checks: list[Callable[[_Report], Iterable[str]]] = [] if case.kind == MEASURE else [_quality, _work]
    checks += [_signs, _memory, _order, _clocks, _events, _precision, _earlier_part]
    checks += [_sums, _met_at_the_end, _last_evaluation] if case.uses_driver and case.kind != MEASURE else []
    return [problem for check in checks for problem in check(report)]


@dataclass(frozen=True)
class _Report:
    """What is held against what; `facts` have the present names."""

    case: PlannedCase
    events: Sequence[Event]
    facts: Mapping[str, Any]
    figures: Mapping[str, Figure]
    round_s: float | None

    def number(self, name: str) -> float | None:
        return number_in(self.facts, name)

    @cached_property
    def numbers(self) -> dict[str, float]:
        """All that are reported."""
        return {name: number for name in self.facts if (number := self.number(name)) is not None}

    @cached_property
    def quality(self) -> Quality:
        return Quality(self.case, self.facts)

    @cached_property
    def last(self) -> Mapping[str, Mapping[str, Any]]:
        return {event.name: event.value for event in self.events}

    @cached_property
    def earlier(self) -> Mapping[str, Any]:
        """The part that the round goes on from."""
        return continued_of(self.facts) or {}


def doubts(case: PlannedCase, events: Sequence[Event], facts: Mapping[str, Any]) -> list[str]:
    """What deserves a note in a result that adds up, each with both values; arguments see `contradictions`."""
    report = _Report(case, events, in_present_names(facts, case.parameters), {}, None)
    notes = []
    trained, window = _trained_and_window(report)
    if is_a_multiple(min(trained, window), max(trained, window), NOTED_FACTOR):
        notes.append(
            f"raw_train_time is {trained:.6g} s, but TRAIN_START to TRAIN_END took {window:.6g} s by the wall clock"
        )
    return notes if case.kind == MEASURE else [*notes, *report.quality.notes()]


def _signs(report: _Report) -> Iterator[str]:
    for name in (*TIMES, *COUNTS):
        if report.numbers.get(name, 0.0) < LEAST.get(name, 0.0):
            yield f"{name} is {report.numbers[name]:.6g}, which is below 0"


def _memory(report: _Report) -> Iterator[str]:
    """A device has no more than all of it."""
    total = report.number(ALL_MEMORY)
    for name in MEMORY:
        value = report.number(name)
        if value is not None and total is not None and value > total * TOLERANCE:
            yield f"{name} is {value:.10g}, but {ALL_MEMORY} is {total:.10g}"


def _order(report: _Report) -> Iterator[str]:
    """Rates are of the same samples over shorter and shorter times, and parts are no longer than the whole."""
    rates = (report.figures[name].value for name in RATES)
    measured = [value for value in rates if value is not None]
    wrong = [f"{a:.6g} > {b:.6g}" for a, b in itertools.pairwise(measured) if a > b * TOLERANCE]
    if wrong:
        yield f"p_whole <= p_train <= p_core does not hold: {', '.join(wrong)}"
    for part, whole in itertools.pairwise(("pure_compute_time", "no_eval_time", "raw_train_time")):
        yield from _longer(report, part, whole, report.number(whole), ROUNDED_S, TOLERANCE)
    took, trained = report.number("time_to_target"), report.number("raw_train_time")
    before = number_in(report.earlier, "train_time") or 0.0
    if took is not None and trained is not None and took > (before + trained) * TOLERANCE + ROUNDED_S:
        yield f"time_to_target is {took:.6g} s, of {before + trained:.6g} s of training"
    if took is not None and before and took * TOLERANCE < before:
        yield f"time_to_target is {took:.6g} s, less than the {before:.6g} s of the part before"


def _longer(
    report: _Report, name: str, what: str, whole: float | None, slack_s: float, slack: float
) -> Iterator[str]:
    value = report.number(name)
    if value is not None and whole is not None and value > whole * slack + slack_s:
        yield f"{name} is {value:.6g} s, but {what} is {whole:.6g} s"


def _clocks(report: _Report) -> Iterator[str]:
    """No time is longer than what it is a part of, by whichever clock; those of two machines have some slack."""
    wholes = {
        "e2e_time": report.number("e2e_time"),
        "the controller's time of the whole round": report.round_s,
    }
    for what, whole in wholes.items():
        for name in ("e2e_time", "init_time", "raw_train_time"):
            yield from _longer(report, name, what, whole, CLOCK_SLACK_S, 1 + CLOCK_SLACK)
    trained, window = _trained_and_window(report)
    within = report.round_s is None or window <= report.round_s  # else the clock was set
    if within and is_a_multiple(trained, window, CLOCK_FACTOR):
        yield f"raw_train_time is {trained:.6g} s, but TRAIN_START to TRAIN_END took {window:.6g} s"


def _trained_and_window(report: _Report) -> tuple[float, float]:
    """Seconds of training by the monotonic clock and by the wall clock; twice 0 where one of them is not there."""
    window, trained = training_window(report.events), report.number("raw_train_time")
    return (0.0, 0.0) if trained is None or isinstance(window, str) else (trained, window.seconds)


def _met_at_the_end(report: _Report) -> Iterator[str]:
    """The driver ends the training with the evaluation that meets the target, by one clock; a script may go on."""
    took, trained = report.number("time_to_target"), report.number("raw_train_time")
    if took is None or trained is None:
        return
    before = number_in(report.earlier, "train_time") or 0.0
    if before + trained - took > CLOCK_SET_S + CLOCK_SLACK * trained:
        yield f"time_to_target is {took:.6g} s, of {before + trained:.6g} s of training, which ends when it is met"


def _earlier_part(report: _Report) -> Iterator[str]:
    """Of the part that a round goes on from the driver says the same at its beginning and its end."""
    begun = continued_of(report.last.get(EventName.INIT_END, {})) or {}
    for name in ("step", "samples", "train_time"):
        first, last = number_in(begun, name), number_in(report.earlier, name)
        if report.case.uses_driver and report.case.kind != MEASURE and first != last:
            yield f"continued: {name} is {first} in INIT_END and {last} in FINISHED"
        elif min(first or 0.0, last or 0.0) < 0:
            yield f"continued: {name} is below 0"


def is_a_multiple(low: float, high: float, factor: float) -> bool:
    """Whether `high` is more than `factor` times `low`, beyond what two clocks differ by (times in s)."""
    return high - low > CLOCK_SET_S and high > low * factor


def _events(report: _Report) -> Iterator[str]:
    """The driver's events stand in their order, and those once that bound the training; of a script's the bounds do."""
    names = [EventName(event.name) for event in report.events]
    if report.case.uses_driver:  # what stands twice of those before the training is a doubt of the rules
        names = [name for at, name in enumerate(names) if PLACES[name] > 0 or name not in names[:at]]
    else:  # a script may begin the training anew: the last bounds are those of the window
        bounds = [name for name in reversed(names) if name in (*ONCE, EventName.FINISHED)]
        names = list(reversed(dict.fromkeys(bounds)))
    for first, second in itertools.pairwise(names):
        if PLACES[first] > PLACES[second]:
            yield f"{second.value} stands behind {first.value}"
    if report.case.uses_driver:
        yield from (f"{name.value} stands more than once" for name in ONCE if names.count(name) > 1)
        owed = [] if report.case.kind == MEASURE else [name.value for name in OWED if name not in names]
        yield from [f"there is no {', '.join(owed)} before FINISHED"] if owed else []


def _work(report: _Report) -> Iterator[str]:
    """Something was trained, and the driver says how much."""
    for name in WORK:
        value = report.number(name)
        if value is not None and value <= 0:
            yield f"{name} is {value:.6g}: nothing was trained"
        elif value is not None and not value.is_integer() and (report.case.uses_driver or name == WORK[0]):
            yield f"{name} is {value:.10g}, which is not a whole number"
        elif value is None and report.case.uses_driver:
            yield f"{name} is not reported"
    if report.case.uses_driver and report.number("raw_train_time") is None:
        yield "raw_train_time is not reported"  # which time_to_target is held against


def _quality(report: _Report) -> Iterator[str]:
    yield from report.quality.contradictions()


def _precision(report: _Report) -> Iterator[str]:
    """MFU is a part of the peak of FINISHED's precision: that is the plan's, or what INIT_END made of its `auto`."""
    reported, planned = report.facts.get("precision"), report.case.parameters.get("precision")
    if planned not in PRECISIONS:  # what a script of a case's own may mean by the name
        return
    where = "INIT_END's" if planned == AUTO else "the plan's"
    expected = report.last.get(EventName.INIT_END, {}).get("precision") if planned == AUTO else planned
    if reported is not None and expected is not None and reported != expected:
        yield f"precision is {reported}, and {where} {expected}"


def _sums(report: _Report) -> Iterator[str]:
    """What the driver computes of what it reports."""
    own = report.numbers
    parts = {"no_eval_time": ("raw_train_time", "eval_time", "checkpoint_time"),
             "pure_compute_time": ("no_eval_time", "data_wait_time")}  # fmt: skip
    for name, (whole, *less) in parts.items():
        if {name, whole, *less} <= own.keys():
            rest = own[whole] - sum(own[each] for each in less)
            if abs(own[name] - rest) > (TOLERANCE - 1) * own[whole] + ROUNDED_S:
                yield f"{name} is {own[name]:.6g} s, but {' - '.join((whole, *less))} is {rest:.6g} s"
    for name in RATES:
        rate = report.figures[name].value
        if rate is not None and name in own and max(rate, own[name]) > TOLERANCE * min(rate, own[name]):
            yield f"{name} is {own[name]:.6g}, but samples / {RATES[name]} is {rate:.6g}"
    if set(WORK) <= own.keys() and own["num_trained_samples"] < own["global_steps"]:
        yield f"global_steps is {own['global_steps']:.10g}, of {own['num_trained_samples']:.10g} samples"
    if is_true(report.facts.get("converged")) != ("time_to_target" in own):
        yield f"converged is {report.facts.get('converged')}, and time_to_target {own.get('time_to_target')}"


def _last_evaluation(report: _Report) -> Iterator[str]:
    """Training ends with an evaluation: what it says, FINISHED repeats; counters of events are of all parts."""
    metric, ends = str(report.facts.get("metric")), report.last.get(EventName.TRAIN_END, {})
    evaluated = report.last.get(EventName.EVALUATE, {})
    pairs = (
        ("num_trained_samples", evaluated, "num_trained_samples", "samples"),
        ("global_steps", ends or evaluated, "global_steps", "step"),
        (f"final_{metric}", evaluated, metric, ""),
    )
    for name, event, key, earlier in pairs:
        own, theirs = report.number(name), number_in(event, key)
        before = (number_in(report.earlier, earlier) or 0.0) if earlier else 0.0
        if own is not None and theirs is not None and own != theirs - before:
            where = (
                EventName.TRAIN_END.value
                if event is ends and ends
                else f"the last {EventName.EVALUATE.value}"
            )
            yield f"{name} is {own:.10g}, but {where} says {theirs:.10g}"
