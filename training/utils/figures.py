"""FlagPerf's own figures: one registry, from which results, tables and docs/results.md are made.

The driver computes the figures once for the FINISHED event and the controller again from that event's raw
values, so that an old run can be scored anew. Not measured is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from utils.checkpoints import continued_of
from utils.figure_records import (
    FINISHED,
    FULL_COVERAGE,
    GIB,
    HIGHER,
    LEAST_COVERAGE,
    LOWER,
    TRAINING,
    Definition,
    Figure,
    Formula,
    Peak,
)
from utils.numbers import number_in, rate
from utils.telemetry_figures import TELEMETRY_FIGURES

__all__ = [
    "DEFINITIONS",
    "FINISHED",
    "FULL_COVERAGE",
    "GIB",
    "HIGHER",
    "LEAST_COVERAGE",
    "LOWER",
    "TRAINING",
    "Definition",
    "Figure",
    "Peak",
    "figures_from_finished",
    "model_flops_utilisation",
    "of_this_part",
    "unwatched_part",
]


def figures_from_finished(finished: Mapping[str, Any], peak: Peak) -> dict[str, Figure]:
    """Every figure of the registry that a FINISHED event bears.

    Args:
        finished: its values; times in seconds, memory in bytes, counts over all ranks.
        peak: the chips' peak rate in the precision used; its `flops` may be None.

    A run that was continued reports its own part only, and the windows say so.
    """
    continued = continued_of(finished)
    figures = {}
    for name, definition in DEFINITIONS.items():
        if definition.formula is not None:
            figure = definition.formula(definition, finished, peak)
            whole = continued is None or definition.of_all_parts
            figures[name] = figure if whole else of_this_part(figure, continued or {})
    return figures


def of_this_part(figure: Figure, continued: Mapping[str, Any]) -> Figure:
    """The same figure, saying that it is of this part of a continued run."""
    return replace(figure, window=f"{figure.window}; this part only, continued from step {continued['step']}")


def unwatched_part(continued: Mapping[str, Any] | None) -> str:
    """What this run's telemetry does not tell of a continued one: whether something disturbed the part before."""
    return f"the training up to step {continued['step']} was not watched by this run" if continued else ""


def model_flops_utilisation(
    flops_per_sample: float | None, p_train: float | None, peak: Peak
) -> float | None:
    """MFU = model FLOPs per sample x p_train / (chips x peak FLOP/s), as PaLM (appendix B) defines it."""
    if flops_per_sample is None or p_train is None or not peak.flops or peak.chips <= 0:
        return None
    return flops_per_sample * p_train / (peak.chips * peak.flops)


def _reported(raw: str) -> Formula:
    """As the event says it under the name `raw`."""

    def formula(own: Definition, finished: Mapping[str, Any], _: Peak) -> Figure:
        value = number_in(finished, raw)
        return own.figure(value, FINISHED if value is not None else f"{raw} is not in the {FINISHED}")

    return formula


def _per_second(what: str, divisor: str) -> Formula:
    """The `what` (samples or tokens) trained, by the time `divisor`."""

    def formula(own: Definition, finished: Mapping[str, Any], _: Peak) -> Figure:
        value = rate(number_in(finished, f"num_trained_{what}"), number_in(finished, divisor))
        source = f"{what} / {divisor}" if value is not None else f"{what} or {divisor} is not reported"
        return own.figure(value, source)

    return formula


def _device_memory(raw: str) -> Formula:
    """Bytes under the name `raw`, in GiB."""

    def formula(own: Definition, finished: Mapping[str, Any], _: Peak) -> Figure:
        value = number_in(finished, raw)
        if value is None:
            return own.figure(None, f"{raw} is {_NO_MEMORY}")
        return own.figure(value / GIB, f"{raw}, {FINISHED}")

    return formula


def _time_to_target(own: Definition, finished: Mapping[str, Any], _: Peak) -> Figure:
    """Of both parts where the run was continued: of the earlier one until its checkpoint was begun.

    What was trained after that was lost, with the time to the next start, and is in none of the figures.
    """
    value = number_in(finished, own.name)
    missing = "no evaluation met the target, or the case does not report it"
    figure = own.figure(value, FINISHED if value is not None else missing)
    continued = continued_of(finished)
    if continued is None:
        return figure
    before = number_in(continued, "train_time")
    length = "an unknown time" if before is None else f"{before:.6g} s"
    window = f"training up to the checkpoint of step {continued['step']} ({length}) + {own.window}"
    return replace(
        figure, window=window, caveat=unwatched_part(continued) if figure.value is not None else ""
    )


def _mfu(own: Definition, finished: Mapping[str, Any], peak: Peak) -> Figure:
    flops = number_in(finished, "model_flops_per_sample")
    p_train = rate(number_in(finished, "num_trained_samples"), number_in(finished, "no_eval_time"))
    value = model_flops_utilisation(flops, p_train, peak)
    if value is None:
        missing = "the peak FLOP/s" if not peak.flops else "the model FLOPs per sample or p_train"
        return own.figure(None, f"{missing} is not known ({peak.source})")
    formula = finished.get("flops_formula") or "reported by the case"
    chips = f"{peak.chips} x {peak.flops:.4g} FLOP/s; {peak.source}"
    figure = own.figure(value, f"{flops:.4g} FLOPs/sample ({formula}) x p_train / ({chips})")
    return replace(figure, caveat="more than the chips' peak: not to be trusted") if value > 1 else figure


def _quality(own: Definition, finished: Mapping[str, Any], _: Peak) -> Figure:
    metric = str(finished.get("metric") or "")
    value, target = (number_in(finished, name) for name in (f"final_{metric}", "target"))
    aim = "" if target is None else f"; its target: {target:.6g}"
    source = f"final_{metric}, {FINISHED}{aim}" if value is not None else "no quality metric is reported"
    return replace(own.figure(value, source), unit=metric or own.unit)


_NO_MEMORY = "not reported, as by a device without memory of its own (cpu)"
_REGISTRY = (
    Definition(
        "e2e_time", "s", "first line of the training script..FINISHED", LOWER,
        "first line of rank 0's training script to FINISHED", "not reported", _reported("e2e_time"), heading="e2e s",
    ),
    Definition(
        "round_time", "s", "start of the round..its logs collected", LOWER,
        "the controller's clock: from having its hosts to having its logs, building the image included",
        "of a round that was taken up, where its hosts did not tell how long it had gone on", None, heading="round s",
    ),
    Definition(
        "init_time", "s", "INIT_START..INIT_END", LOWER,
        "INIT_START to INIT_END: model, data, first evaluation", "not reported", _reported("init_time"),
    ),
    Definition(
        "raw_train_time", "s", TRAINING, LOWER,
        "TRAIN_START to TRAIN_END, evaluations included", "not reported", _reported("raw_train_time"),
    ),
    Definition(
        "no_eval_time", "s", f"{TRAINING} less evaluations and saving checkpoints", LOWER,
        "`raw_train_time` less the evaluations and the saving of checkpoints",
        "not reported", _reported("no_eval_time"),
    ),
    Definition(
        "pure_compute_time", "s", f"{TRAINING} less evaluations, saving checkpoints and waiting for data", LOWER,
        "`no_eval_time` less the time in which the device had no data to work on: a wait at whose end the device "
        "was idle counts whole (an upper bound, the largest over ranks)",
        "not reported", _reported("pure_compute_time"),
    ),
    Definition(
        "time_to_target", "s", "TRAIN_START..end of the evaluation that met the target", LOWER,
        "TRAIN_START to the end of the evaluation that met the target; of a continued round, of both parts",
        "none did", _time_to_target, heading="to target s", of_all_parts=True,
    ),
    Definition(
        "p_whole", "samples/s", TRAINING, HIGHER, "samples / `raw_train_time`",
        "one of the two is not reported", _per_second("samples", "raw_train_time"), heading="p_whole /s",
    ),
    Definition(
        "p_train", "samples/s", TRAINING, HIGHER, "samples / `no_eval_time`",
        "one of the two is not reported", _per_second("samples", "no_eval_time"), heading="p_train /s",
    ),
    Definition(
        "p_core", "samples/s", TRAINING, HIGHER, "samples / `pure_compute_time`",
        "one of the two is not reported", _per_second("samples", "pure_compute_time"), heading="p_core /s",
    ),
    Definition(
        "tokens_per_second", "tokens/s", TRAINING, HIGHER, "tokens that are no padding / `no_eval_time`",
        "the case counts no tokens", _per_second("tokens", "no_eval_time"),
    ),
    Definition(
        "MFU", "1", TRAINING, HIGHER, "model FLOPs per sample x `p_train` / (chips x peak FLOP/s)",
        "peak or FLOPs are not known, or a vendor's hook changed the model", _mfu, heading="MFU",
    ),
    Definition(
        "acc", "1", "last evaluation", HIGHER, "the case's metric; its name is the unit",
        "no evaluation", _quality, heading="acc", digits=4, of_all_parts=True, of_metric=True,
    ),
    Definition(
        "final_loss", "1", "last training step", LOWER,
        "loss of the last step's global batch, as the case counts it (a cross entropy: in nats)", "not reported",
        _reported("final_loss"), of_all_parts=True,
    ),
    Definition(
        "samples", "samples", TRAINING, None, "samples trained, over all ranks",
        "not reported", _reported("num_trained_samples"),
    ),
    Definition("steps", "steps", TRAINING, None, "optimizer steps", "not reported", _reported("global_steps")),
    Definition(
        "mem", "GiB", "whole run", LOWER,
        "largest device memory that the framework allocated; largest over ranks",
        _NO_MEMORY, _device_memory("mem_allocated_bytes"), heading="mem GiB",
    ),
    Definition(
        "mem_reserved", "GiB", "whole run", LOWER,
        "largest device memory that the framework reserved; largest over ranks",
        _NO_MEMORY, _device_memory("mem_reserved_bytes"),
    ),
    Definition(
        "mem_total", "GiB", "whole run", None, "device memory that there is",
        _NO_MEMORY, _device_memory("mem_total_bytes"),
    ),
    *TELEMETRY_FIGURES,
)  # fmt: skip
DEFINITIONS: Mapping[str, Definition] = {definition.name: definition for definition in _REGISTRY}
