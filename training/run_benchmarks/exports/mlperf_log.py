"""A round of BERT as the `:::MLLOG` lines of MLPerf Training 5.0, derived from rank 0's events.

Nothing is in it that did not happen or was not measured; what the official checker misses then, it says itself.
The keys: MLPerf's `mlperf_logging` package; what stands in them for BERT: its training rules and reference.
"""

from __future__ import annotations

import importlib
import io
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from run_benchmarks.commands import RUN_PY
from run_benchmarks.exports.chosen import Round, in_ms
from run_benchmarks.results.folder import section
from run_benchmarks.results.rules import CLOSED, OPEN
from utils.errors import FlagPerfError
from utils.events import Event, EventName
from utils.numbers import number_in
from utils.records import Verdict

LABEL = "not an MLPerf result: not submitted to, reviewed or verified by MLCommons"
CLOSED_QUALITY = 0.720  # masked language model accuracy: MLPerf's target, which is above FlagPerf's own
BERT = "bert"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_NEEDED = (EventName.INIT_START, EventName.TRAIN_START, EventName.TRAIN_END)
# MLPerf's key -> the parameter that it is.
_OF_ANY = {
    "seed": "seed",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "opt_name": "optimizer",
    "opt_base_learning_rate": "learning_rate",
    "opt_learning_rate_training_steps": "decay_steps",
    "opt_learning_rate_warmup_steps": "warmup_steps",
    "num_warmup_steps": "warmup_steps",
}
_OF_LAMB = {
    "opt_lamb_epsilon": "epsilon",
    "opt_lamb_beta_1": "beta_1",
    "opt_lamb_beta_2": "beta_2",
    "opt_lamb_weight_decay_rate": "weight_decay_rate",
}


@dataclass(frozen=True)
class Line:
    """One line. kind: `event`, `start` or `end`, as the package's logger calls them."""

    time_ms: int
    kind: str
    key: str
    value: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def mlperf_module(name: str) -> Any:
    """A module of the official package.

    Raises:
        FlagPerfError: it is not installed.
    """
    try:
        return importlib.import_module(f"mlperf_logging.{name}")
    except ModuleNotFoundError as error:
        raise FlagPerfError(
            f"{error.name} is not installed, which writes and checks MLPerf's logs",
            remedy=f"pip install -r {REQUIREMENTS}",
        ) from error


def is_bert(each: Round) -> bool:
    """Whether a round is one of BERT by the shared driver, whose events are the driver's."""
    case = each.case
    return case is not None and case.uses_driver and Path(case.files.case_dir).parent.name == BERT


def why_not(each: Round, events: Sequence[Event]) -> str:
    """Why there can be no log of this round; empty where there can."""
    names = {event.name for event in events}
    missing = [name.value for name in _NEEDED if name.value not in names]
    if missing:
        return f"rank 0's log has no {' and no '.join(missing)} ({each.result.verdict.value})"
    if each.result.rules.stand_in:
        return each.result.rules.explanation()
    if each.result.continued:
        return "it went on from a checkpoint: its log is of a part of the training"
    return ""


def division_of(each: Round) -> tuple[str, str]:
    """`closed` or `open`, and why: closed is what kept to the case's rules and met MLPerf's own target."""
    figure = each.result.figures.get("acc")
    accuracy = figure.value if figure else None
    stamp, _, why = each.result.rules.explanation().partition(": ")
    if each.result.rules.stamp != CLOSED:
        return OPEN, why or stamp
    if each.result.verdict is not Verdict.CONVERGED:
        return OPEN, f"the round did not converge ({each.result.verdict.value})"
    if accuracy is None or accuracy < CLOSED_QUALITY:
        return OPEN, f"MLPerf's closed division asks for an accuracy of {CLOSED_QUALITY}, this is {accuracy}"
    return CLOSED, why


def lines_of_round(each: Round, events: Sequence[Event], organisation: str, platform: str) -> list[Line]:
    """The lines of a round of which `why_not` says nothing, in the order of time."""
    first = {event.name: event for event in reversed(events)}
    begun = first[EventName.INIT_START]
    lines = [
        *_of_submission(each, begun, organisation, platform),
        *_cache_clear(each),
        Line(begun.time_ms, "start", "init_start"),
        *_hyperparameters(each, begun),
        *_end_of_init(first),
        *_training(events),
        *_sample_counts(first),
    ]
    return sorted(lines, key=lambda line: line.time_ms)


def written(lines: Sequence[Line]) -> str:
    """The lines as text, by the official package's own writer, below one that says what they are not."""
    text = io.StringIO()
    logger = logging.Logger(__name__)  # of its own: nothing else is written to it
    logger.addHandler(logging.StreamHandler(text))
    writer = mlperf_module("mllog.mllog").MLLogger(logger, root_dir=re.escape(str(RUN_PY.parents[1])))
    for line in lines:
        write = getattr(writer, line.kind)
        write(line.key, line.value, metadata=dict(line.metadata), time_ms=line.time_ms)
    return f"# {LABEL}\n{text.getvalue()}"


def result_line(each: Round, events: Sequence[Event], organisation: str) -> str:
    """`RESULT,BERT,,<seconds>,<organisation>,<start>`: the time to target, and when rank 0 wrote INIT_START.

    Empty for a round that did not converge: it has no such time.
    """
    figure = each.result.figures.get("time_to_target")
    if each.result.verdict is not Verdict.CONVERGED or figure is None or figure.value is None:
        return ""
    begun = next(event.time_ms for event in events if event.name == EventName.INIT_START)
    start = f"{each.local_time(begun):%Y-%m-%d %I:%M:%S %p}"
    return f"RESULT,BERT,,{figure.value:.3f},{organisation},{start}\n"


def _of_submission(each: Round, begun: Event, organisation: str, platform: str) -> Iterator[Line]:
    values = {
        "submission_benchmark": BERT,
        "submission_org": organisation,
        "submission_division": division_of(each)[0],
        "submission_status": LABEL,
        "submission_platform": platform,
    }
    for key, value in values.items():
        yield Line(begun.time_ms, "event", key, value)


def _cache_clear(each: Round) -> Iterator[Line]:
    """Where CLEAR_CACHES was set: hosts drop their page caches as the last of the stage before `image`."""
    if section(each.folder.plan, "run").get("clear_caches") is not True:
        return
    place = {"case": each.result.case, "round": each.result.round, "event": "stage", "stage": "image"}
    for entry in each.folder.journal:
        time_s = number_in(entry, "time")
        if time_s is not None and all(entry.get(name) == value for name, value in place.items()):
            yield Line(in_ms(time_s), "event", "cache_clear", True)
            return


def _hyperparameters(each: Round, begun: Event) -> Iterator[Line]:
    """What INIT_START says that the round ran with."""
    values = section(begun.value, "config")
    keys = {**_OF_ANY, **(_OF_LAMB if values.get("optimizer") == "lamb" else {})}
    had = {key: values[name] for key, name in keys.items() if values.get(name) is not None}
    if "num_warmup_steps" in had:
        had["start_warmup_step"] = 0  # the driver's schedules begin to warm up with the first step
    sizes: list[Any] = [values.get("train_batch_size"), values.get("gradient_accumulation_steps")]
    if each.case and all(type(size) is int for size in sizes):
        ranks = each.case.settings.nnodes * each.case.settings.nproc
        had["global_batch_size"] = sizes[0] * sizes[1] * ranks
    for key, value in had.items():
        yield Line(begun.time_ms, "event", key, value)


def _end_of_init(first: Mapping[str, Event]) -> Iterator[Line]:
    ended = first.get(EventName.INIT_END)
    if ended:
        yield Line(ended.time_ms, "end", "init_stop")
    yield Line(first[EventName.TRAIN_START].time_ms, "start", "run_start")


def _training(events: Sequence[Event]) -> Iterator[Line]:
    """Blocks of training and the evaluations between them; BERT counts both in samples, `epoch_num` too."""
    samples, reached = 0, False
    for event in events:
        if event.name == EventName.TRAIN_START:
            yield Line(event.time_ms, "start", "block_start", None, {"samples_count": samples})
        elif event.name == EventName.EVALUATE:
            before, samples = samples, int(number_in(event.value, "num_trained_samples") or 0)
            started = event.time_ms - in_ms(number_in(event.value, "eval_time") or 0.0)
            place = {"epoch_num": samples, "samples_count": samples}
            yield Line(started, "end", "block_stop", None, {"samples_count": before})
            yield Line(started, "start", "eval_start", None, place)
            accuracy = number_in(event.value, str(event.value.get("metric")))
            target = number_in(event.value, "target")
            reached = accuracy is not None and target is not None and accuracy >= target
            if accuracy is not None:
                yield Line(event.time_ms, "event", "eval_accuracy", accuracy, place)
            yield Line(event.time_ms, "end", "eval_stop", None, place)
            if not (reached or event.value.get("end_training")):
                yield Line(event.time_ms, "start", "block_start", None, {"samples_count": samples})
        elif event.name == EventName.TRAIN_END:
            status = "success" if reached else "aborted"
            yield Line(event.time_ms, "end", "run_stop", None, {"status": status, "samples_count": samples})


def _sample_counts(first: Mapping[str, Event]) -> Iterator[Line]:
    """`train_samples` are those trained on, as MLPerf's own checker of convergence reads it for BERT."""
    finished = first.get(EventName.FINISHED)
    keys = {"train_samples": "num_trained_samples", "eval_samples": "num_eval_samples"}
    for key, name in keys.items():
        value = number_in(finished.value, name) if finished else None
        if finished and value is not None:
            yield Line(finished.time_ms, "event", key, int(value))
