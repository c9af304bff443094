"""Read what the monitors wrote: strict, but for a last line that a killed host left unfinished."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from utils.errors import FlagPerfError
from utils.telemetry.records import Sample, Scope, SourceInfo, Telemetry


def read_telemetry(path: Path) -> Telemetry:
    """The records of a `telemetry.jsonl`.

    Raises:
        FlagPerfError: the file cannot be read, or a whole line is not a record; names file and line.
    """
    sources: list[SourceInfo] = []
    samples: list[Sample] = []
    for where, line in _whole_lines(path):
        record = _record(line, where)
        if isinstance(record, Sample):
            samples.append(record)
        else:
            sources.append(record)
    return Telemetry(str(path), tuple(sources), tuple(samples))


def _whole_lines(path: Path) -> Iterator[tuple[str, str]]:
    """`file:line` and text of every line that was written to its end.

    A host that lost power may leave half a line, or zero bytes that were allocated and never written.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FlagPerfError(f"cannot read the telemetry: {error.strerror}", where=str(path)) from error
    whole, _, _cut = text.rpartition("\n")
    for number, line in enumerate(whole.split("\n") if whole else (), start=1):
        yield f"{path}:{number}", line


def _record(line: str, where: str) -> Sample | SourceInfo:
    try:
        fields = json.loads(line)
        kind = fields.pop("kind")
        if kind == "sample":
            return _checked_sample(Sample(**fields))
        if kind == "source":
            return _source_info(fields)
        raise ValueError(f"kind {kind!r} is neither sample nor source")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FlagPerfError(
            f"not a telemetry record: {error}",
            where=where,
            remedy="the file was edited or comes from another version; leave this line out to read the rest",
        ) from error


def _checked_sample(sample: Sample) -> Sample:
    texts = ("source", "device", "error")
    for name, value in vars(sample).items():
        if not isinstance(value, str if name in texts else (int, float, type(None))):
            raise ValueError(f"{name} is {value!r}")
    return sample


def _source_info(fields: Mapping[str, Any]) -> SourceInfo:
    return SourceInfo(**{"note": "", **fields, "scope": Scope(fields["scope"])})
