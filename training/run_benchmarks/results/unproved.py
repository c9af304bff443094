"""What nobody can tell of a result that does not contradict itself: it has no stamp."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from run_benchmarks.results.consistency import CLOCK_SET_S, NOTED_FACTOR
from run_benchmarks.results.evaluations import not_evaluated
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.power import training_window
from run_benchmarks.results.quality import Evaluated, doubt_of
from run_benchmarks.results.round_result import MEASURE
from utils.checkpoints import continued_of
from utils.events import Event, EventName
from utils.numbers import number_in
from utils.parameters import AUTO

LEAST_TRAINED = 0.05  # of a training passes in training: with less a rate of that is of nothing
_BOUNDS = {EventName.TRAIN_START, EventName.TRAIN_END}


def unproved_in(
    case: PlannedCase,
    events: Sequence[Event],
    facts: Mapping[str, Any],
    continue_from: str,
    best: Evaluated | None,
) -> str:
    """Why nobody can tell that what FINISHED's `facts` say is so, though nothing contradicts it; empty for nothing.

    Args:
        facts: in the present names.
        continue_from: the run that the round was to go on from, or empty.
        best: of the evaluations of a script of the case's own.
    """
    reasons = (
        doubt_of(case, facts),
        _unsettled_precision(case, events, facts),
        _untimed(events, facts),
        *_other_parts(events),
        "" if continue_from else _unasked(events, facts),
        *(() if case.uses_driver else _of_script(case, events, facts, best)),
    )
    return "; ".join(filter(None, reasons))


def _of_script(
    case: PlannedCase, events: Sequence[Event], facts: Mapping[str, Any], best: Evaluated | None
) -> Iterator[str]:
    """What the shared driver's events and sums bear out, which of a script of a case's own are not required."""
    yield _met_unevaluated(events, facts)
    yield "" if case.kind == MEASURE else not_evaluated(best, facts)
    trained = number_in(facts, "raw_train_time") or 0.0
    # Of none no rate is made.
    for name in ("no_eval_time", "pure_compute_time"):
        part = number_in(facts, name)
        if part and part < trained * LEAST_TRAINED:
            yield f"that {name} is {part:.6g} s, of {trained:.6g} s of training, is not proved"


def _untimed(events: Sequence[Event], facts: Mapping[str, Any]) -> str:
    """A rate is of the time trained, which the wall clock bears out: one that was set back says nothing of it."""
    names, window = {event.name for event in events}, training_window(events)
    if not names >= _BOUNDS or not isinstance(window, str) or number_in(facts, "raw_train_time") is None:
        return ""
    return f"that training took raw_train_time is not proved: by the wall clock {window}"


def _unsettled_precision(case: PlannedCase, events: Sequence[Event], facts: Mapping[str, Any]) -> str:
    """MFU is a part of the peak of a precision that `auto` does not name, and that the driver settles in INIT_END."""
    reported, is_auto = facts.get("precision"), case.parameters.get("precision") == AUTO
    if reported is None or not (is_auto and case.uses_driver) or case.kind == MEASURE:
        return ""
    if any(event.value.get("precision") for event in events if event.name == EventName.INIT_END):
        return ""
    return (
        f'that precision = "{AUTO}" came to {reported} is not proved: no {EventName.INIT_END.value} says so'
    )


def _met_unevaluated(events: Sequence[Event], facts: Mapping[str, Any]) -> str:
    """A script may train on behind its target; but none has met it long before it evaluated for the first time."""
    at = {event.name: event.time_ms for event in reversed(events)}
    start, first = at.get(EventName.TRAIN_START), at.get(EventName.EVALUATE)
    took = number_in(facts, "time_to_target")
    if took is None or not start or not first:
        return ""
    seconds = (first - start) / 1000
    if seconds - took <= CLOCK_SET_S or seconds <= NOTED_FACTOR * took:
        return ""
    return (
        f"that the target was met after {took:.6g} s is not proved: "
        f"the first EVALUATE came {seconds:.6g} s after TRAIN_START"
    )


def _other_parts(events: Sequence[Event]) -> Iterator[str]:
    """What other code made of weights and optimizer came with the checkpoint, and no check of this part sees it.

    Logs and checkpoints of earlier versions do not tell of `other_code`: nobody knows what their parts ran.
    """
    continued = (continued_of(event.value) for event in events if event.name == EventName.INIT_END)
    parts = [part for part in continued if part]
    if any(part.get("other_hooks") for part in parts):
        yield "an earlier part was trained with other code of the vendor (extern/), which nobody can check here"
    if any(part.get("other_code") is not False for part in parts):
        yield (
            "an earlier part was trained with other code of the case or the driver, or another "
            "environment_variables.sh, or nothing tells with which"
        )
    if any(part.get("other_data") for part in parts):
        yield "an earlier part was trained on other data, which have no manifest, or nothing tells on which"


def _unasked(events: Sequence[Event], facts: Mapping[str, Any]) -> str:
    """Times, samples and steps of an earlier part count: there is none where the round was to begin anew."""
    values = (facts, *(event.value for event in events if event.name == EventName.INIT_END))
    part = next(filter(None, map(continued_of, values)), None)
    if part is None:
        return ""
    return (
        f"that it goes on from step {part['step']} of an earlier part is not proved: the round was begun anew"
    )
