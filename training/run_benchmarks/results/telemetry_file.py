"""Read what a node's monitors wrote: strict, but for a last line that a killed host left unfinished."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from run_benchmarks.results.reading import first_problem
from utils.errors import FlagPerfError
from utils.telemetry.records import Sample, SourceInfo, Telemetry

_RECORD: TypeAdapter[Sample | SourceInfo] = TypeAdapter(
    Annotated[Sample | SourceInfo, Field(discriminator="kind")]
)


def read_telemetry(path: Path) -> Telemetry:
    """The records of a `telemetry.jsonl`.

    Raises:
        FlagPerfError: the file cannot be read, or a whole line is not a record; names file and line.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FlagPerfError(f"cannot read the telemetry: {error.strerror}", where=str(path)) from error
    # a host that lost power may leave half a line, or zero bytes that were allocated and never written
    whole = text.split("\n")[:-1]
    records = [_record(line, f"{path}:{number}") for number, line in enumerate(whole, start=1)]
    return Telemetry(
        str(path),
        tuple(record for record in records if isinstance(record, SourceInfo)),
        tuple(record for record in records if isinstance(record, Sample)),
    )


def _record(line: str, where: str) -> Sample | SourceInfo:
    try:
        return _RECORD.validate_json(line, strict=True)
    except ValidationError as error:
        raise FlagPerfError(
            f"not a telemetry record: {first_problem(error)}",
            where=where,
            remedy="the file was edited or comes from another version; leave this line out to read the rest",
        ) from error
