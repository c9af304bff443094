"""What a training was to reach, and what it says that it reached: its metric against the plan's target."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from run_benchmarks.results.legacy_figures import in_present_names, targets_in
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.round_result import MEASURE
from utils.case_form import BETTER
from utils.events import Event, EventName
from utils.figures import HIGHER, LOWER
from utils.numbers import number_in
from utils.parameters import TARGET
from utils.records import Failure, FailureClass

# Logs round: two values may differ by a thousandth.
TOLERANCE = 1.001
# A script of a case's own may count in per cent, and a trial may aim at less than one of them.
LEAST_SHARE = 0.5
MOST_PART = 2.0  # so much is no part of 1, however the metric is named
FAR = 10.0  # times as much at its best as in the end is not noise, but another unit
# Metrics that are a part of all, by their names: of others 1 may be a small target.
SHARE = re.compile(r"(^|_)(accuracy|acc\d*|exact_match|em|embedding_average)(_|$)", re.IGNORECASE)
# Metrics that are met from above, by their names; a script of a case's own says it itself as `metric_better`.
FALLS = re.compile(
    r"(^|_)(loss|nll|error|err|ppl|perplexity|wer|cer|eer|fid|mae|mse|rmse|bpc|bpb|bpd"
    r"|bits_per_(?!s(ec(ond)?)?(_|$)|joule|watt)[a-z\d]+)(_|$)",
    re.IGNORECASE,
)
# Met from below all the same: such a metric negated (`neg_loss`), a name that ends in what rises (`error_reduction`).
NEGATED = re.compile(r"(^|_)(neg|negative|negated|minus|inverse)_(?!log)", re.IGNORECASE)
RISES = re.compile(
    r"_(accuracy|acc\d*|f1|precision|recall|free(_rate)?|reduction|improvement)$", re.IGNORECASE
)

# Metrics that are a part, a count or a distance, by the end of their names; what is made of one may have a sign.
UNSIGNED = re.compile(
    r"(^|_)(accuracy|acc\d*|exact_match|em|f1|precision|recall|wer|cer|eer|error_rate|ppl|perplexity|mae|mse|rmse)$",
    re.IGNORECASE,
)
SIGNED = re.compile(
    r"(^|_)(neg|negative|negated|minus|log\d*|ln|delta|diff|difference|change|gain|relative|excess|adjusted)_",
    re.IGNORECASE,
)


def falls(metric: str) -> bool:
    """Whether a metric of this name is met from above: a loss is, a negated one and a loss's reduction are not."""
    return bool(FALLS.search(metric)) and not NEGATED.search(metric) and not RISES.search(metric)


def is_true(value: object) -> bool:
    """Whether a case's FINISHED says yes: cases write it in several ways."""
    return value is True or (isinstance(value, str) and value.lower() == "true") or value == 1


def doubt_of(case: PlannedCase, facts: Mapping[str, Any]) -> str:
    """Why nobody can tell that the target was met, as FINISHED's `facts` say; empty where the metric bears it out."""
    return "" if case.kind == MEASURE else Quality(case, in_present_names(facts, case.parameters)).doubt()


def better_of(case: PlannedCase, metric: str) -> str:
    """Which way a metric is better; of the driver the larger is, whatever its name."""
    own = case.parameters.get(BETTER) or (LOWER if falls(metric) else HIGHER)
    return LOWER if own == LOWER and not case.uses_driver else HIGHER


@dataclass(frozen=True)
class Evaluated:
    """A metric as a script of a case's own reports it, and the only target that the plan has, which is the metric's.

    reached: what FINISHED says that the metric came to; None where that is not known.
    """

    case: PlannedCase
    metric: str
    value: float
    target: float
    reached: float | None = None

    @property
    def is_above_share(self) -> bool:
        """Whether it is more than all, of a metric that is a part of all as its target is: it may be in per cent."""
        is_share = SHARE.search(self.metric) and not self.is_better_lower
        return bool(is_share) and 0 < self.target <= 1 and self.value > TOLERANCE

    @property
    def is_of_another_unit(self) -> bool:
        """Whether it is in per cent, and its target a part of 1: by its name, or as what FINISHED has bears out.

        That is a part of 1 far below it, or a number that meets the target in per cent too.
        """
        reached = self.reached
        if reached is None or not 0 < self.target <= 1 or self.is_better_lower or self.value < MOST_PART:
            return self.is_above_share
        if reached <= TOLERANCE:
            return self.is_above_share or 0 <= reached * FAR <= self.value
        return self.is_above_share or reached * TOLERANCE >= self.target * 100

    @property
    def is_better_lower(self) -> bool:
        """Whether the metric is met from above."""
        return better_of(self.case, self.metric) == LOWER

    def is_met(self, slack: float = 0.0) -> bool:
        """Whether it meets the target; what is of another unit meets nothing."""
        if self.is_of_another_unit:
            return False
        if self.is_better_lower:
            return self.value <= self.target + slack
        return self.value >= self.target - slack

    def may_be_met(self) -> bool:
        """Whether it meets the target but for the rounding of logs, or does where one of both is in per cent."""
        slack = abs(self.target) * (TOLERANCE - 1)
        return any(replace(self, value=value).is_met(slack) for value in self._in_units())

    def _in_units(self) -> Iterator[float]:
        """The value as it is, and in the target's unit where that seems to be another, as FINISHED bears out."""
        yield self.value
        share, per_cent = self.value / 100, self.value * 100
        if self.is_of_another_unit or (0 < self.target <= 1 < self.value and self._is_like_reached(share)):
            yield share
        if 0 <= self.value <= TOLERANCE and self.target > 1 and self._is_like_reached(per_cent):
            yield per_cent

    def _is_like_reached(self, value: float) -> bool:
        return self.reached is not None and value / 2 <= self.reached <= value * 2


def met_untrained(events: Sequence[Event], facts: Mapping[str, Any]) -> list[str]:
    """A target that a trivial answer, or the weights that training begins with, meet already proves nothing."""
    target, metric = number_in(facts, "target"), str(facts.get("metric"))
    begin = next((event.value for event in events if event.name == EventName.INIT_EVALUATION), {})
    values = {"a trivial answer's": number_in(begin, "baseline"), "the initial": number_in(begin, metric)}
    met = [
        f"{whose} {metric} is {value:.6g}"
        for whose, value in values.items()
        if target is not None and value is not None and value >= target
    ]
    return [f"the target, {target:.6g}, was met before training: {', '.join(met)}"] if met else []


def loss_notes(events: Sequence[Event], failure: Failure) -> list[str]:
    """A last loss that is no number, for which JSON has null: why a training failed that does not say so itself."""
    steps = [event.value for event in events if event.name == EventName.STEP_END]
    last = steps[-1] if steps else {}
    if failure.failure_class is FailureClass.DIVERGED or last.get("loss", 0.0) is not None:
        return []
    step = number_in(last, "global_steps")
    where = "" if step is None else f" (step {step:.0f})"
    return [f"the last loss that rank 0 reported was no finite number{where}: see docs/failures.md, diverged"]


@dataclass(frozen=True)
class Quality:
    """What FINISHED says of the metric; `facts` have the present names."""

    case: PlannedCase
    facts: Mapping[str, Any]

    @cached_property
    def converged(self) -> bool:
        """Whether it says that the target was met."""
        return is_true(self.facts.get("converged"))

    @cached_property
    def metric(self) -> str:
        """The metric's name: where a script of a case's own names none, that of the plan's only target."""
        metric, targets = str(self.facts.get("metric") or ""), self._targets
        return targets[0] if not metric and not self.case.uses_driver and len(targets) == 1 else metric

    @cached_property
    def reached(self) -> float | None:
        """What the metric came to."""
        return number_in(self.facts, f"final_{self.metric}")

    @cached_property
    def target(self) -> float | None:
        """The metric's, by the plan."""
        target = number_in(self.case.parameters, f"{TARGET}{self.metric}")
        if target is None and self.case.uses_driver:
            return number_in(self.case.parameters, "target")
        return target

    def contradictions(self) -> Iterator[str]:
        """`converged` against metric and target, and the metric against what it can be."""
        metric, reached, target = self.metric, self.reached, self.target
        if self.case.uses_driver and self.converged and (reached is None or target is None):
            missing = f"final_{metric}" if reached is None else f"target_{metric} in the plan"
            yield f"converged, but there is no {missing}"
        if reached is not None and reached < 0 and UNSIGNED.search(metric) and not SIGNED.search(metric):
            yield f"{metric} is {reached:.6g}, and none is below 0"
        if reached is None or target is None:
            return
        least = 0.0 if self.case.uses_driver else LEAST_SHARE
        if target >= least and Evaluated(self.case, metric, reached, target).is_above_share:
            yield f"{metric} is {reached:.6g}, more than all: its target, {target:.6g}, is a part of 1"
        short = reached - target if self._falls else target - reached
        slack = 0.0 if self.case.uses_driver else abs(target) * (TOLERANCE - 1)
        if self.converged and short > slack:
            yield f"converged, but {metric} is {reached:.6g} and the plan's target {target:.6g}{self._direction}"
        if self.case.uses_driver and not self.converged and short <= 0:
            yield f"not converged, but {metric} is {reached:.6g} and the plan's target {target:.6g}"

    def notes(self) -> Iterator[str]:
        """What deserves a note in a result that adds up."""
        if self._is_above_all and not self.doubt():
            yield self._units()

    def doubt(self) -> str:
        """Why `converged` is no more than a script's word; of the shared driver it is a contradiction."""
        if self.case.uses_driver or not self.converged or not self._targets:
            return ""
        if self.reached is not None and self.target is not None:
            # A trial in per cent may be right; 7 % against a target of 0.3 that means 30 % is not.
            reached = Evaluated(self.case, self.metric, self.reached, self.target)
            return self._units() if reached.is_above_share else self._others_missed()
        aims = ", ".join(f"{TARGET}{name} = {self.case.parameters[TARGET + name]}" for name in self._targets)
        if self.metric and self.target is None:
            lack = f"and none for {self.metric}, which FINISHED names"
        else:
            lack = f"and FINISHED has no number of {f'final_{self.metric}' if self.metric else 'its metric'}"
        return f"that it converged is not proved: the plan has {aims}, {lack}"

    def _others_missed(self) -> str:
        """The plan's targets beside the metric's that FINISHED's own values do not meet."""
        # which way the case says to be better is of its metric: the names of others tell theirs
        parameters = {name: value for name, value in self.case.parameters.items() if name != BETTER}
        case = replace(self.case, parameters=parameters)
        missed = [
            f"{name} is {reached:.6g}, and {TARGET}{name} = {target:.6g}"
            for name, target in targets_in(self.case.parameters).items()
            if name != self.metric and (reached := number_in(self.facts, f"final_{name}")) is not None
            if not Evaluated(case, name, reached, target).may_be_met()
        ]
        return f"that it converged is not proved: {'; '.join(missed)}" if missed else ""

    def _units(self) -> str:
        return f"{self.metric} is {self.reached:.6g}, and its target {self.target:.6g}: are both of the same unit?"

    @property
    def _targets(self) -> list[str]:
        """The metrics for which the plan has a target."""
        return list(targets_in(self.case.parameters))

    @property
    def _direction(self) -> str:
        """What a script's author may have to say of the metric."""
        if self.case.uses_driver or self.case.parameters.get(BETTER):
            return ""
        way = LOWER if self._falls else HIGHER
        return f" ({way} is better by its name: where it is not, set {BETTER} in the case's configuration)"

    @property
    def _falls(self) -> bool:
        return better_of(self.case, self.metric) == LOWER

    @property
    def _is_above_all(self) -> bool:
        reached, target = self.reached, self.target
        return reached is not None and target is not None and 0 < target <= 1 and reached > TOLERANCE
