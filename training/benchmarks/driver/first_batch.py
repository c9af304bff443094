"""What a case gives is looked at on the first batch: a mistake is told at the start, and not after an hour."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.driver.batches import Batch, Step
from benchmarks.driver.case_answers import case_error, check_metrics, is_number, kind_of, shape_of
from benchmarks.driver.engine import TrainingEngine
from benchmarks.driver.random_states import host_random_state, set_host_random_state
from utils.errors import raised

# The sum of what the loss gave for a batch's halves, over what it gave for all of it: 1 for sums, 2 for means.
NOT_A_SUM = 1.5


def check_case(engine: TrainingEngine[Any], step: Step) -> None:
    """Forward and evaluate one batch each; nothing of it is left behind. Every rank calls this with its first step.

    Raises:
        FlagPerfError: what the case gives is not what `driver/case.py` asks for.
    """
    _check_baseline(engine)
    _check_counts(engine.case, step)
    device, host = engine.random_state(), host_random_state()
    with engine.evaluating():
        _check_loss(engine, step[0])
        _check_evaluation(engine)
    inputs, loss = step[0].inputs, engine.case.loss
    engine.inspector.count_flops(engine.module, loss, inputs, step[0].flops)
    engine.load_random_state(device)
    set_host_random_state(host)


def _check_baseline(engine: TrainingEngine[Any]) -> None:
    value = engine.case.baseline()
    if value is not None and not (is_number(value) and math.isfinite(value)):
        remedy = "return the metric that a trivial answer reaches, or None"
        raise case_error(engine.case, f"baseline gave {kind_of(value)}", remedy)


def _check_counts(case: Any, step: Step) -> None:
    for batch in step:
        counts = batch.loss_counts
        if not counts or not all(is_number(count) and count >= 0 for count in counts):
            message = f"Batch.loss_counts is {counts!r}, not the number of labels of each part of the loss"
            raise case_error(case, message, "write one number a part, e.g. loss_counts=(float(labels),)")


def _check_loss(engine: TrainingEngine[Any], batch: Batch) -> None:
    sums = engine.case.loss(engine.module, engine.moved(batch.inputs))
    parts = len(batch.loss_counts)
    remedy = 'return the sum over labels of each part in float32: e.g. cross entropy with reduction="sum", '
    remedy += "then .float().reshape(1)"
    if shape_of(sums) != (parts,):
        message = (
            f"loss gave {kind_of(sums)}, not a vector of {parts} sum(s), one for each of Batch.loss_counts"
        )
        raise case_error(engine.case, message, remedy)
    if not str(sums.dtype).endswith("float32"):
        raise case_error(engine.case, f"loss gave sums in {sums.dtype}, not in float32", remedy)
    values = sums.tolist()
    if not all(map(math.isfinite, values)):
        look = "look at the first batch: are there labels, are ids in range, does a weight overflow?"
        raise case_error(engine.case, f"the loss of the first batch is {values}", look)
    for whole, halves in zip(values, _losses_of_halves(engine), strict=False):
        if min(halves) * max(halves) > 0 and abs(sum(halves)) > NOT_A_SUM * abs(whole):
            message = (
                f"loss gave {whole:.6g} for the first batch, and {halves[0]:.6g} and {halves[1]:.6g} for its "
            )
            raise case_error(engine.case, f"{message}halves: a mean, or else no sum over labels", remedy)


def _losses_of_halves(engine: TrainingEngine[Any]) -> list[tuple[float, float]]:
    """Of each part of the loss its values for the first batch's two halves; empty where they cannot be had."""
    halves, engine.loader.halves = engine.loader.halves or [], []
    try:
        sums = [engine.case.loss(engine.module, engine.moved(half.inputs)).tolist() for half in halves]
    except Exception as error:  # a model or a kernel may take whole batches alone: then nobody can tell
        print(f"the loss of half a batch was not looked at: {raised(error)}", file=sys.stderr)
        return []
    return list(zip(*sums, strict=True))


def _check_evaluation(engine: TrainingEngine[Any]) -> None:
    """On the first batch of this rank's part, if it has one."""
    for batch in engine.loader.evaluation_batches()[:1]:
        sums = engine.case.evaluate(engine.module, engine.moved(batch.inputs))
        if len(shape_of(sums) or ()) != 1:
            message = f"evaluate gave {kind_of(sums)}, not a vector of sums"
            raise case_error(
                engine.case, message, "return what metrics needs, to be added up: torch.stack([...])"
            )
        values: Sequence[float] = sums.double().tolist()
        try:
            metrics = engine.case.metrics(list(values))
        except ArithmeticError:  # of one batch alone there may be nothing to divide by
            continue
        check_metrics(engine.case, metrics)
