"""A search's events are read as they were written, and what no controller writes is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from run_benchmarks.reading import parsed
from utils.errors import FlagPerfError
from utils.events import format_line, parse_line
from utils.search.events import (
    RECORDS,
    Epoch,
    SearchEnd,
    SearchRecord,
    SearchStart,
    TrialEnd,
    TrialStart,
    Worker,
    event_of,
)

START = SearchStart(0.0, "5e1a", 1, 0.0, 2, 3600.0, None, (15, 30, 45, 60), 42)
EPOCH = Epoch(61.5, trial=1, attempt=1, worker=0, epoch=1, seconds=60.0, training_samples=1200,
              validation_samples=300, accuracy=0.5)  # fmt: skip
ALL = (
    START,
    Worker(0.5, 0, 1, "joined", 0, 8, "fp16", 1200, 300, "sha256:ab"),
    TrialStart(1.5, 1, 1, 0, 1, None, (), 177, 25_000_000, 7_806_583_495, 23_053_458_315, 448, 0.1, 3, 15),
    EPOCH,
    TrialEnd(61.5, 1, 1, 0, "done", 1, 0.5),
    SearchEnd(62.0, "deadline", 1, 1),
)


def _read(record: SearchRecord, **other: Any) -> SearchRecord:
    event = parse_line(format_line(event_of(record, 1_700_000_000_000)))
    assert event is not None
    assert (event.time_ms, event.rank) == (1_700_000_000_000, 0)
    read: SearchRecord = parsed(RECORDS[event.name], {**event.value, **other}, "the log")
    return read


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.event.value)
def test_what_is_written_is_read(record: SearchRecord) -> None:
    assert _read(record) == record


def test_a_loss_that_is_not_finite_is_none() -> None:
    assert _read(replace(EPOCH, loss=None)) == EPOCH


@pytest.mark.parametrize(
    "wrong",
    [
        {"accuracy": 1.5},
        {"accuracy": -0.1},
        {"epoch": -1},
        {"epoch": 1.5},
        {"seconds": None},
        {"time_s": 1e99},
        {"training_samples": "1200"},
        {"loss": "nan"},
    ],
    ids=str,
)
def test_an_epoch_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(FlagPerfError, match=next(iter(wrong))):
        _read(EPOCH, **wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"search": "x" * 501}, {"search": "a\nb"}, {"epochs": [1] * 101}, {"epochs": [-1]}, {"epochs": 15}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_start_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(FlagPerfError, match=next(iter(wrong))):
        _read(START, **wrong)
