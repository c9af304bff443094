"""FlagPerf's figures, each with its unit, window and source: the one place where their formulas stand.

The driver computes them once for the FINISHED event and the controller again from that event's raw
values, so that an old run can be scored anew. Not measured is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

GIB = 2**30
FINISHED = "FINISHED event of global rank 0"
TRAINING = "TRAIN_START..TRAIN_END"


@dataclass(frozen=True)
class Figure:
    """A measured or derived number. `window` is the time it speaks of, `source` where it comes from.

    Where `value` is None, `source` says why there is none.
    """

    value: float | None
    unit: str
    window: str
    source: str

    def as_dict(self) -> dict[str, Any]:
        """The figure as plain data, for `result.json`."""
        return asdict(self)


@dataclass(frozen=True)
class Peak:
    """What the chips can do: `chips` of them, each `flops` FLOP/s (dense) in the precision used."""

    chips: int
    flops: float | None
    source: str


def rate(count: float | None, seconds: float | None) -> float | None:
    """`count` per second; None where either is not measured or no time has passed."""
    if count is None or not seconds or seconds <= 0:
        return None
    return count / seconds


def model_flops_utilisation(
    flops_per_sample: float | None, p_train: float | None, peak: Peak
) -> float | None:
    """MFU = model FLOPs per sample x p_train / (chips x peak FLOP/s), as PaLM (appendix B) defines it."""
    if flops_per_sample is None or p_train is None or not peak.flops or peak.chips <= 0:
        return None
    return flops_per_sample * p_train / (peak.chips * peak.flops)


def figures_from_finished(finished: Mapping[str, Any], peak: Peak) -> dict[str, Figure]:
    """Every figure that a FINISHED event bears.

    Args:
        finished: the event's values; times in seconds, memory in bytes, counts over all ranks.
        peak: the chips' peak rate in the precision used; its `flops` may be None.

    A run that was continued reports its own part only, and the windows say so.
    """
    figures = {
        **_times(finished),
        **_rates(finished),
        "MFU": _mfu(finished, peak),
        **_quality(finished),
        **_memory(finished),
    }
    continued = continued_of(finished)
    return _of_a_part(figures, continued) if continued else figures


def continued_of(values: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What an event says of the earlier part that a run goes on from: `step`, `samples`, `train_time` (s), `file`."""
    continued = values.get("continued")
    return continued if isinstance(continued, Mapping) and "step" in continued else None


def of_this_part(figure: Figure, continued: Mapping[str, Any]) -> Figure:
    """The same figure, saying that it is of this part of a continued run."""
    return replace(figure, window=f"{figure.window}; this part only, continued from step {continued['step']}")


def _of_a_part(figures: Mapping[str, Figure], continued: Mapping[str, Any]) -> dict[str, Figure]:
    """The same figures, each saying which part of the run it is of.

    Quality is of the weights, whoever trained them. `time_to_target` is the training time of both parts: of
    the earlier one until its checkpoint was begun. What was trained after that was lost, with the time to the
    next start, and is in none of the figures.
    """
    step = continued["step"]
    found = {name: of_this_part(figure, continued) for name, figure in figures.items()}
    before = _number(continued, "train_time")
    told = "an unknown time" if before is None else f"{before:.6g} s"
    window = f"training up to the checkpoint of step {step} ({told}) + {figures['time_to_target'].window}"
    return {
        **found,
        "acc": figures["acc"],
        "final_loss": figures["final_loss"],
        "time_to_target": replace(figures["time_to_target"], window=window),
    }


def _number(finished: Mapping[str, Any], name: str) -> float | None:
    value = finished.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _reported(finished: Mapping[str, Any], name: str, unit: str, window: str) -> Figure:
    value = _number(finished, name)
    source = FINISHED if value is not None else f"{name} is not in the {FINISHED}"
    return Figure(value, unit, window, source)


def _times(finished: Mapping[str, Any]) -> dict[str, Figure]:
    windows = {
        "e2e_time": "first line of the training script..FINISHED",
        "init_time": "INIT_START..INIT_END",
        "raw_train_time": TRAINING,
        "no_eval_time": f"{TRAINING} less evaluations and saving checkpoints",
        "pure_compute_time": f"{TRAINING} less evaluations, saving checkpoints and waiting for data",
    }
    figures = {name: _reported(finished, name, "s", window) for name, window in windows.items()}
    reached = _number(finished, "time_to_target")
    source = (
        FINISHED if reached is not None else "no evaluation met the target, or the case does not report it"
    )
    figures["time_to_target"] = Figure(
        reached, "s", "TRAIN_START..end of the evaluation that met the target", source
    )
    return figures


def _rates(finished: Mapping[str, Any]) -> dict[str, Figure]:
    samples = _number(finished, "num_trained_samples")
    tokens = _number(finished, "num_trained_tokens")
    divisors = {"p_whole": "raw_train_time", "p_train": "no_eval_time", "p_core": "pure_compute_time"}
    figures = {
        name: _rate_figure(finished, samples, "samples", divisor) for name, divisor in divisors.items()
    }
    figures["tokens_per_second"] = _rate_figure(finished, tokens, "tokens", "no_eval_time")
    return figures


def _rate_figure(finished: Mapping[str, Any], count: float | None, what: str, divisor: str) -> Figure:
    value = rate(count, _number(finished, divisor))
    source = f"{what} / {divisor}" if value is not None else f"{what} or {divisor} is not reported"
    return Figure(value, f"{what}/s", TRAINING, source)


def _mfu(finished: Mapping[str, Any], peak: Peak) -> Figure:
    flops = _number(finished, "model_flops_per_sample")
    p_train = rate(_number(finished, "num_trained_samples"), _number(finished, "no_eval_time"))
    value = model_flops_utilisation(flops, p_train, peak)
    if value is None:
        missing = "the peak FLOP/s" if not peak.flops else "the model FLOPs per sample or p_train"
        return Figure(None, "1", TRAINING, f"{missing} is not known ({peak.source})")
    formula = finished.get("flops_formula") or "reported by the case"
    chips = f"{peak.chips} x {peak.flops:.4g} FLOP/s; {peak.source}"
    source = f"{flops:.4g} FLOPs/sample ({formula}) x p_train / ({chips})"
    return Figure(value, "1", TRAINING, source)


def _quality(finished: Mapping[str, Any]) -> dict[str, Figure]:
    metric = str(finished.get("metric") or "")
    acc = _number(finished, f"final_{metric}") if metric else None
    source = f"final_{metric}, {FINISHED}" if acc is not None else "no quality metric is reported"
    return {
        "acc": Figure(acc, metric or "1", "last evaluation", source),
        "final_loss": _reported(finished, "final_loss", "nats", "last training step"),
        "samples": _reported(finished, "num_trained_samples", "samples", TRAINING),
        "steps": _reported(finished, "global_steps", "steps", TRAINING),
    }


def _memory(finished: Mapping[str, Any]) -> dict[str, Figure]:
    names = {
        "mem": "mem_allocated_bytes",
        "mem_reserved": "mem_reserved_bytes",
        "mem_total": "mem_total_bytes",
    }
    figures = {}
    for name, raw in names.items():
        value = _number(finished, raw)
        source = (
            f"{raw}, largest over ranks" if value is not None else f"{raw} is not reported: no device memory"
        )
        figures[name] = Figure(None if value is None else value / GIB, "GiB", "whole run", source)
    return figures
