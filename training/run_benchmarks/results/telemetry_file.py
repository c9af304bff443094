"""Read what a node's monitors wrote: strict, but for a last line that a killed host left unfinished."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from run_benchmarks.reading import first_problem
from utils.errors import FlagPerfError
from utils.telemetry.records import Sample, Scope, SourceInfo, Telemetry
from utils.text_files import LONGEST_LINE, lines_of

_RECORD: TypeAdapter[Sample | SourceInfo] = TypeAdapter(
    Annotated[Sample | SourceInfo, Field(discriminator="kind")]
)


def read_telemetry(path: Path, scopes: Collection[Scope] = tuple(Scope)) -> Telemetry:
    """The records of a `telemetry.jsonl`; no more samples are held than those of sources with these scopes.

    Raises:
        FlagPerfError: the file cannot be read, or a whole line is not a record; names file and line.
    """
    sources: list[SourceInfo] = []
    samples: list[Sample] = []
    left_out: set[str] = set()
    for number, line in enumerate(lines_of(path), start=1):
        if not line.endswith("\n") and len(line) < LONGEST_LINE:
            continue  # a host that lost power may leave half a line, or zero bytes that were never written
        record = record_of(line, f"{path}:{number}")
        if isinstance(record, SourceInfo):
            sources.append(record)
            left_out |= set() if record.scope in scopes else {record.source}
        elif record.source not in left_out:
            samples.append(record)
    return Telemetry(str(path), tuple(sources), tuple(samples))


def record_of(line: str, where: str) -> Sample | SourceInfo:
    """The record that a line of `telemetry.jsonl` is.

    Raises:
        FlagPerfError: it is none; names `where`.
    """
    try:
        return _RECORD.validate_json(line, strict=True)
    except ValidationError as error:
        raise FlagPerfError(
            f"not a telemetry record: {first_problem(error)}",
            where=where,
            remedy="the file was edited or comes from another version; leave this line out to read the rest",
        ) from error
