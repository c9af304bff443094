"""Why a round did not converge though nothing failed, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from run_benchmarks.names import node_folder_name
from run_benchmarks.results.legacy_figures import in_present_names
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.round_result import RoundResult
from utils.checkpoints import continued_of
from utils.events import Event, EventName
from utils.node import rank_log_name
from utils.numbers import number_in

# setting -> its counter in FINISHED, which is of this part of a continued run alone, and that of the parts before
CAPS = {
    "max_steps": ("global_steps", "step"),
    "max_samples_termination": ("num_trained_samples", "samples"),
}


def shortfall(case: PlannedCase, events: Sequence[Event], facts: Mapping[str, Any]) -> str:
    """What ended the training, how far its metric came, and from where.

    Args:
        events: global rank 0's: of EVALUATE the first and the last one.
        facts: the values of its FINISHED.
    """
    facts = in_present_names(facts, case.parameters)
    return ": ".join(filter(None, (_end(case, facts), ", ".join(_quality(case, events, facts)))))


def advice(result: RoundResult) -> str:
    """Where to look and what to try."""
    where = f"{result.case}/round{result.round}"
    where += f"/{node_folder_name(result.hosts[0], 0)}" if result.hosts else ""
    return (
        f"see the evaluations in {where}/{rank_log_name(0)}: where the metric still rises, let it train longer "
        f"({', '.join(CAPS)}, or what the case's own script has); where it stands still, try another learning rate, "
        "or see whether the data are right; see docs/failures.md, NOT_CONVERGED"
    )


def _end(case: PlannedCase, facts: Mapping[str, Any]) -> str:
    earlier = continued_of(facts) or {}
    reached = []
    for setting, (counter, before) in CAPS.items():
        cap, own = number_in(case.parameters, setting), number_in(facts, counter)
        if cap is not None and own is not None and own + (number_in(earlier, before) or 0) >= cap:
            reached.append(f"{setting} = {cap:.10g}")
    if reached:
        return f"training came to its cap, {' and '.join(reached)}"
    steps = number_in(facts, "global_steps")
    return "training ended" if steps is None else f"training ended after {steps:.10g} steps"


def _quality(case: PlannedCase, events: Sequence[Event], facts: Mapping[str, Any]) -> Iterator[str]:
    metric = str(facts.get("metric") or "")
    own, theirs = number_in(case.parameters, f"target_{metric}"), number_in(facts, "target")
    values = {
        f"{metric} is": number_in(facts, f"final_{metric}"),
        "its target": theirs if own is None else own,
    }
    first = next((event.value for event in events if event.name == EventName.EVALUATE), {})
    values[f"after the first evaluation (step {first.get('global_steps')}) it was"] = number_in(first, metric)
    values["a trivial answer has"] = number_in(facts, "baseline")
    yield from (f"{what} {value:.6g}" for what, value in values.items() if value is not None)
