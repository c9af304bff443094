"""What the evaluations of a script of a case's own say of the only target that the plan has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from run_benchmarks.results.legacy_figures import targets_in, with_numbers
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.quality import Evaluated, is_true
from utils.events import Event, EventName
from utils.numbers import number_in
from utils.parameters import TARGET


class Evaluations:
    """Those of a script's log while that is read, of which the best is kept; of the shared driver's none."""

    def __init__(self, case: PlannedCase) -> None:
        self._case = case
        self._targets = {} if case.uses_driver else targets_in(case.parameters)
        self._best: Evaluated | None = None

    def meets(self, event: Event) -> bool:
        """Whether this is one that met the target."""
        evaluated = self._evaluated(event)
        for each in evaluated:
            if self._best is None or self._is_better(each.value, self._best):
                self._best = each
        return bool(evaluated) and evaluated[0].is_met()

    def best(self, facts: Mapping[str, Any]) -> Evaluated | None:
        """The best of all, beside what FINISHED's `facts` say, which have the present names."""
        best = self._best
        return best and replace(best, reached=number_in(facts, f"final_{best.metric}"))

    def _evaluated(self, event: Event) -> list[Evaluated]:
        """What it says of the metric; first what has the name of an evaluation, as beside it may stand a training's."""
        if event.name != EventName.EVALUATE or len(self._targets) != 1:
            return []
        ((metric, target),) = self._targets.items()
        values = with_numbers(event.value)
        numbers = (number_in(values, name) for name in (f"eval_{metric}", metric))
        return [Evaluated(self._case, metric, number, target) for number in numbers if number is not None]

    @staticmethod
    def _is_better(value: float, best: Evaluated) -> bool:
        return value < best.value if best.is_better_lower else value > best.value


def evaluation_notes(best: Evaluated | None) -> list[str]:
    """That a script's evaluations are of another unit than their target: none of them counts as one that met it."""
    if best is None or not best.is_of_another_unit:
        return []
    than = "more than all" if best.is_above_share else f"and FINISHED that it is {best.reached:.6g}"
    what = (
        f"EVALUATE says that {best.metric} is {best.value:.6g}, {than}, and its target is {best.target:.6g}"
    )
    return [f"{what}: of another unit it meets nothing, so when the target was met is not known"]


def not_evaluated(best: Evaluated | None, facts: Mapping[str, Any]) -> str:
    """That none of a script's evaluations met the target, though FINISHED's `facts` say so."""
    if best is None or not is_true(facts.get("converged")) or best.may_be_met():
        return ""
    aim = f"{TARGET}{best.metric} = {best.target:.6g}"
    return f"that it converged is not proved: no EVALUATE met {aim}, the best says {best.value:.6g}"


def evaluation_that_met(
    case: PlannedCase,
    events: Sequence[Event],
    first: Event | None,
    best: Evaluated | None,
    facts: Mapping[str, Any],
) -> Event | None:
    """The evaluation that met the target, of rank 0's events; None where FINISHED does not say that it was met.

    The driver ends the training with it, a script may go on: of its evaluations `first` is the first that met it.
    """
    if not is_true(facts.get("converged")):
        return None
    if not case.uses_driver:
        return None if evaluation_notes(best) else first
    return next((event for event in reversed(events) if event.name == EventName.EVALUATE), None)
