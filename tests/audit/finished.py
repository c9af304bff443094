"""What FINISHED says, computed again from the events before it and from the rates of single windows."""

from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

from tests.audit.recomputation import Figures, rank0_events

Facts = dict[str, Any]


def finished(folder: Path, seen: Facts) -> tuple[Facts, Facts]:
    """What FINISHED says, and what the events of training before it make of the same names."""
    events = rank0_events(folder, seen)
    facts = next(value for name, value, _ in events if name == "FINISHED")
    evaluations = [value for name, value, _ in events if name == "EVALUATE"]
    starts = {name: value for name, value, _ in events if name in {"INIT_END", "TRAIN_END"}}
    last = evaluations[-1]
    samples, steps = last["num_trained_samples"], starts["TRAIN_END"]["global_steps"]
    no_eval = facts["raw_train_time"] - facts["eval_time"] - facts["checkpoint_time"]
    compute = no_eval - facts["data_wait_time"]
    return facts, {
        "init_time": starts["INIT_END"]["init_time"],
        "eval_time": math.fsum(value["eval_time"] for value in evaluations),
        "checkpoint_time": math.fsum(
            value["checkpoint_time"] for name, value, _ in events if name == "CHECKPOINT"
        ),
        "no_eval_time": no_eval,
        "pure_compute_time": compute,
        "num_trained_samples": samples,
        "global_steps": steps,
        "global_batch_size": samples // steps,
        "final_loss": last["loss"],
        f"final_{last['metric']}": last[last["metric"]],
        "metric": last["metric"],
        "target": last["target"],
        "converged": last[last["metric"]] >= last["target"],
        "p_whole": samples / facts["raw_train_time"],
        "p_train": samples / no_eval,
        "p_core": samples / compute,
        "training_sequences_per_second": samples / facts["raw_train_time"],
    }


def rates_of_operations(facts: Facts) -> Figures:
    """The rates of a case that measures operations, and their spreads, from the rates of all windows and ranks."""
    own: Figures = {}
    for name, operation in facts["operations"].items():
        slowest = min((rank["rates"] for rank in operation["ranks"]), key=statistics.median)
        own[name] = statistics.median(slowest)
        own[f"{name}_spread"] = (quantile(slowest, 3) - quantile(slowest, 1)) / statistics.median(slowest)
    return own


def quantile(rates: list[float], quarter: int) -> float:
    """Linear between the sorted rates."""
    position = (len(rates) - 1) * quarter / 4
    below = math.floor(position)
    first, second = sorted(rates)[below], sorted(rates)[math.ceil(position)]
    return first + (second - first) * (position - below)
