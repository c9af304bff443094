"""PerfLog: the events that a training script writes and the controller reads.

One event is one line, `[PerfLog] {"event": ..., "value": {...}, "metadata": {...}}`, anywhere in a
rank's output. The format is FlagPerf's own and older case folders write it too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from utils.numbers import finite
from utils.text_files import lines_of

PREFIX = "[PerfLog]"
# Of what a stranger writes no more is taken: so many lists and objects in each other, ...
DEEPEST = 32
# ... so many values, of which the largest honest event has some thousands, ...
MOST_VALUES = 50_000
# ... numbers that a float can hold, ...
_MOST = sys.float_info.max
# ... and whole numbers, as times and ranks, up to which JSON's are exact.
_MOST_WHOLE = 2**53
_DECODER = json.JSONDecoder()


class EventName(str, Enum):
    """The events of a run, in the order in which they happen."""

    INIT_START = "INIT_START"
    HOOKS = "HOOKS"
    INIT_EVALUATION = "INIT_EVALUATION"
    INIT_END = "INIT_END"
    TRAIN_START = "TRAIN_START"
    EPOCH_BEGIN = "EPOCH_BEGIN"
    STEP_BEGIN = "STEP_BEGIN"
    STEP_END = "STEP_END"
    EVALUATE = "EVALUATE"
    CHECKPOINT = "CHECKPOINT"
    EPOCH_END = "EPOCH_END"
    TRAIN_END = "TRAIN_END"
    FINISHED = "FINISHED"


@dataclass(frozen=True)
class Event:
    """One event. `time_ms` is wall-clock time in milliseconds since the epoch, `rank` the global rank.

    `name` is a plain string, because a case may log events of its own.
    """

    name: str
    value: Mapping[str, Any] = field(default_factory=dict)
    time_ms: int = 0
    rank: int = 0
    file: str = ""
    lineno: int = 0


def format_line(event: Event) -> str:
    """The event as one line, without a newline. NaN and infinity become null: JSON has neither."""
    record = {
        "event": str(event.name.value if isinstance(event.name, EventName) else event.name),
        "value": finite(dict(event.value)),
        "metadata": {
            "file": event.file,
            "lineno": event.lineno,
            "time_ms": event.time_ms,
            "rank": event.rank,
        },
    }
    return f"{PREFIX} {json.dumps(record, allow_nan=False)}"


def parse_line(line: str) -> Event | None:
    """The event in `line`, or None where it holds none, one that was cut off in the middle, or one too deep or large.

    Text may stand before the prefix, where a launcher prepends the rank's name or a progress bar has not
    ended its line, and after the record, where another thread's output ran into the line. A number that is not
    finite, or too large for a float, is None: it is not reported.
    """
    _, prefix, text = line.partition(PREFIX)
    if not prefix or (len(text) > MOST_VALUES and sum(map(text.count, ",[{")) > MOST_VALUES):
        return None
    try:
        record, _ = _DECODER.raw_decode(text.lstrip())
        record = _encodable(record) if "\\u" in text and "\\ud" in text.lower() else record
        return _event(record) if isinstance(record, dict) and "event" in record else None
    except (ValueError, RecursionError):
        return None


def read_events(path: Path) -> list[Event]:
    """All events of a rank's log, in the order written.

    Raises:
        FlagPerfError: it is no plain file, or cannot be read.
    """
    return [event for line in lines_of(path) if (event := parse_line(line))]


def _event(record: Mapping[str, Any]) -> Event:
    value = record.get("value")
    if not isinstance(value, dict) or not _is_plain(value):
        value = _bounded(value, DEEPEST)
    metadata = record.get("metadata")
    about: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    return Event(
        name=str(record["event"]),
        value=value if isinstance(value, dict) else {} if value is None else {"value": value},
        time_ms=_whole(about.get("time_ms")),
        rank=_whole(about.get("rank")),
        file=str(about.get("file") or ""),
        lineno=_whole(about.get("lineno")),
    )


def _encodable(record: Any) -> Any:
    """The record with question marks for halves of surrogate pairs, which JSON can write and no file can hold."""
    return json.loads(json.dumps(record, ensure_ascii=False).encode(errors="replace"))


def _is_plain(values: Mapping[str, Any]) -> bool:
    """Whether there is nothing to bound in `values`, as in nearly all events, of which there are many."""
    least, most = -_MOST, _MOST
    for value in values.values():
        kind = type(value)
        if kind is float or kind is int:
            if not least <= value <= most:
                return False
        elif kind is list or kind is dict:
            return False
    return True


def _bounded(value: Any, levels: int) -> Any:
    """`value` with None for what is no number; ValueError where more lists and objects stand in each other."""
    if isinstance(value, (dict, list)) and not levels:
        raise ValueError(f"more than {DEEPEST} levels")
    if isinstance(value, dict):
        return {key: _bounded(item, levels - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_bounded(item, levels - 1) for item in value]
    return None if isinstance(value, (int, float)) and not -_MOST <= value <= _MOST else value


def _whole(value: Any) -> int:
    """A number as written by any case's logger; what is not one, or cannot be, counts as not given."""
    try:
        number = value if type(value) is int else int(float(value))
    except (TypeError, ValueError, OverflowError):
        return 0
    return number if -_MOST_WHOLE <= number <= _MOST_WHOLE else 0
