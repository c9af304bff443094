"""The FINISHED event: the raw values from which every figure can be recomputed, and the main figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.driver.engine import Engine, TrainingEngine
from benchmarks.driver.loop import Outcome
from utils.figures import Peak, figures_from_finished
from utils.parameters import TrainingSettings

# Only rates per second are put into the event; what needs the chip's peak is the controller's.
DERIVED = ("p_whole", "p_train", "p_core")
_NO_PEAK = Peak(chips=0, flops=None, source="not known to the training script")


def finished_values(
    outcome: Outcome,
    *,
    settings: TrainingSettings,
    engine: TrainingEngine[Any],
    metric: str,
    flops_formula: str,
) -> dict[str, Any]:
    """Everything but `e2e_time`, which is read last. Every rank calls this: the counters are summed.

    Counters and times are of this part of the run; what was trained before it is the start's to say.
    """
    counters, times = outcome.counters, outcome.times
    tokens, flops = _summed(engine, [counters.tokens, counters.flops])
    values: dict[str, Any] = {
        "init_time": times.init,
        "raw_train_time": times.train,
        "eval_time": times.evaluation,
        "checkpoint_time": times.checkpoint,
        "data_wait_time": times.wait,
        "no_eval_time": times.no_evaluation,
        "pure_compute_time": times.pure_compute,
        "time_to_target": times.time_to_target,
        "num_trained_samples": counters.samples,
        "num_trained_tokens": None if tokens is None else int(tokens),
        "global_steps": counters.steps,
        "world_size": engine.world_size,
        "global_batch_size": counters.samples // counters.steps,
        "precision": settings.precision,
        "failed_checkpoints": outcome.failed_checkpoints,
        "converged": outcome.converged,
        "final_loss": outcome.loss,
        "metric": metric,
        "target": settings.target,
        "baseline": engine.baseline(),
        "model_flops_per_sample": None if flops is None else flops / counters.samples,
        "flops_formula": flops_formula,
        "rank_times": outcome.rank_times,
        **{f"final_{name}": value for name, value in outcome.metrics.items()},
        **memory_values(engine),
    }
    return {**values, **_derived(values)}


def _summed(engine: Engine[Any], values: list[int | float | None]) -> list[float | None]:
    """Sums over ranks; a value that a case does not count is None on every rank."""
    sums = engine.group.sum_of([0.0 if value is None else float(value) for value in values])
    return [None if value is None else total for value, total in zip(values, sums, strict=True)]


def memory_values(engine: Engine[Any]) -> dict[str, int | None]:
    """Bytes of device memory, the largest over ranks; None where devices have none of their own."""
    memory = engine.device.memory()
    names = ("allocated", "reserved", "total")
    own = [float(getattr(memory, name)) if memory else 0.0 for name in names]
    largest = engine.group.max_of(own)
    return {
        f"mem_{name}_bytes": int(value) if memory else None
        for name, value in zip(names, largest, strict=True)
    }


def _derived(values: Mapping[str, Any]) -> dict[str, float | None]:
    figures = figures_from_finished(values, _NO_PEAK)
    rates = {name: figures[name].value for name in DERIVED}
    return {"training_sequences_per_second": rates["p_whole"], **rates}  # as FlagPerf: over raw_train_time
