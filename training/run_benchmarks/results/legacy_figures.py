"""FINISHED as FlagPerf's existing cases write it, in the names that the figures are computed from.

They report the same things under other names, and rates in place of the count of samples. Nothing is
guessed: what they do not report stays null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from utils.events import Event, EventName
from utils.figures import DEFINITIONS, FINISHED, Figure
from utils.numbers import number_in
from utils.parameters import TARGET

TIMES = {
    "raw_train_time": "train_time",
    "no_eval_time": "train_no_eval_time",
    "pure_compute_time": "pure_training_computing_time",
}
# A target's metric -> what FINISHED calls it in transformer_xl, gpt2, bigtransfer, transformer and cpm, by their code.
OTHER_NAMES = {
    "ppl": "ppl_accuracy",
    "acc": "accuracy",
    "mAP": "accuracy",
    "bleu": "acc",
    "embedding_average": "mlm_accuracy",
}
# The unit in a rate's name is the case's own word for a sample: sequence, image, ...
RATES = {"p_whole": "raw", "p_train": "no_eval", "p_core": "pure_compute"}
RATE_NAMES = ("throughput(ips)_{}", "throughput(sps)_{}", "throuhgput(ips)_{}")  # the last is theirs
WORDS = ("converged", "metric", "precision")  # of which none is a number, whatever is written there
LONGEST_NUMBER = 40  # characters
WHOLE_RATES = ("training_sequences_per_second", "training_images_per_second")


def in_present_names(finished: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """`finished` with times and metric under the present names too; names that are there are kept.

    The metric is that of the only `final_<metric>` beside the loss, or of the only one for which the case's
    `parameters` have a `target_<metric>`; where several are left none is chosen. Where there is none, it is the only
    one with a target that stands there under its plain name. What is another name of the only target's, is that one.
    """
    added = {
        name: finished[earlier]
        for name, earlier in TIMES.items()
        if finished.get(name) is None and earlier in finished
    }
    metrics = [
        name[len("final_") :] for name in finished if name.startswith("final_") and name != "final_loss"
    ]
    if len(metrics) > 1:
        metrics = [metric for metric in metrics if f"{TARGET}{metric}" in parameters]
    elif not metrics:
        metrics = [name for name in targets_in(parameters) if number_in(finished, name) is not None]
        added |= {f"final_{name}": finished[name] for name in metrics}
    elif [OTHER_NAMES.get(name) for name in targets_in(parameters)] == metrics:
        added[f"final_{next(iter(targets_in(parameters)))}"] = finished[f"final_{metrics[0]}"]
        metrics = list(targets_in(parameters))
    if not finished.get("metric") and len(metrics) == 1:
        added["metric"] = metrics[0]
        target = parameters.get(f"{TARGET}{metrics[0]}")
        added |= {} if target is None or "target" in finished else {"target": target}
    return {**finished, **added}


def targets_in(parameters: Mapping[str, Any]) -> dict[str, float]:
    """Metric -> its target, of all that a case's parameters have a number for."""
    numbers = {name: number_in(parameters, name) for name in parameters if name.startswith(TARGET)}
    return {name[len(TARGET) :]: number for name, number in numbers.items() if number is not None}


def with_numbers(finished: Mapping[str, Any]) -> dict[str, Any]:
    """`finished` with numbers for the texts that are one, as scripts print them that format their figures."""
    return {name: _number(value) if name not in WORDS else value for name, value in finished.items()}


def _number(value: object) -> object:
    if not isinstance(value, str) or len(value) > LONGEST_NUMBER:
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return number if math.isfinite(number) else value


def legacy_rates(finished: Mapping[str, Any], figures: Mapping[str, Figure]) -> dict[str, Figure]:
    """p_whole, p_train and p_core as reported, for those of `figures` that could not be computed."""
    rates = {}
    for name, window in RATES.items():
        names = [form.format(window) for form in RATE_NAMES]
        names += WHOLE_RATES if name == "p_whole" else ()
        reported = next((each for each in names if _rate(finished, each)), None)
        if figures[name].value is None and reported is not None:
            source = f"{reported}, {FINISHED}: the case's own figure"
            rates[name] = DEFINITIONS[name].figure(_rate(finished, reported), source)
    return rates


def legacy_times(
    events: Sequence[Event], met: Event | None, figures: Mapping[str, Figure]
) -> dict[str, Figure]:
    """init_time and time_to_target by the clock of rank 0's log, for those of `figures` that are not reported.

    Args:
        met: the first evaluation that met the target.
    """
    first = {event.name: event for event in reversed(events)}
    spans = {
        "init_time": (first.get(EventName.INIT_START.value), first.get(EventName.INIT_END.value)),
        "time_to_target": (first.get(EventName.TRAIN_START.value), met),
    }
    return {
        name: DEFINITIONS[name].figure(
            (end.time_ms - begin.time_ms) / 1000, f"{begin.name}..{end.name} in the log of global rank 0"
        )
        for name, (begin, end) in spans.items()
        if figures[name].value is None and begin and end and 0 < begin.time_ms <= end.time_ms
    }


def _rate(finished: Mapping[str, Any], name: str) -> float | None:
    """The rate under `name`: a finite number above 0."""
    value = number_in(finished, name)
    return value if value and value > 0 else None
