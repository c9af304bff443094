"""Does training start from what it should? The evaluation before it shows that weights and data are the task's."""

from __future__ import annotations

from typing import Any

from benchmarks.driver.case import InitialMetric
from utils.errors import FlagPerfError


def initial_metric(case: Any) -> InitialMetric | None:
    """What the case says of its metric before training; None where it says nothing."""
    expected: InitialMetric | None = case.initial_metric() if hasattr(case, "initial_metric") else None
    return expected


def as_event(expected: InitialMetric | None) -> dict[str, float]:
    """What INIT_EVALUATION says of it, beside the metric: what it was compared with."""
    return {} if expected is None else {"expected": expected.value, "tolerance": expected.tolerance}


def refuse_other_start(expected: InitialMetric | None, value: float, metric: str) -> None:
    """The evaluation before training gave what it should.

    Raises:
        FlagPerfError: it did not. What would be trained is another task, and its time to target no figure of this one.
    """
    if expected is None or abs(value - expected.value) <= expected.tolerance:
        return
    raise FlagPerfError(
        f"before training {metric} is {value:.5f}, and {expected.value:.5f} within {expected.tolerance:g} is "
        f"published for {expected.checkpoint.name}: the weights or the evaluation set are not the task's",
        where=str(expected.checkpoint),
        remedy="prepare the evaluation set and convert the checkpoint again; to train from other weights, give "
        "their file another name and set init_checkpoint to it",
    )
