"""Read what a node's monitors wrote: each line is checked; what is no record is left out and counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from run_benchmarks.reading import first_problem
from utils.errors import FlagPerfError
from utils.telemetry.records import Sample, Scope, SourceInfo, Telemetry
from utils.text_files import LONGEST_LINE, lines_of, shortened

_RECORD: TypeAdapter[Sample | SourceInfo] = TypeAdapter(
    Annotated[Sample | SourceInfo, Field(discriminator="kind")]
)
LATEST_MS = 2**53  # JSON's whole numbers are exact up to here
# Of one node: eight chips that are sampled once a second for a week.
MOST_SAMPLES = 5_000_000
MOST_SOURCES = 1_000
MOST_TEXT = 2**27  # characters of the samples' names and errors
LONGEST_ERROR = 200  # characters that are kept of what a device answered


def read_telemetry(path: Path, scopes: Collection[Scope] = tuple(Scope)) -> Telemetry:
    """The records of a `telemetry.jsonl`; no more samples are held than those of sources with these scopes.

    Raises:
        FlagPerfError: the file cannot be read.
    """
    sources: dict[str, SourceInfo] = {}
    samples: list[Sample] = []
    lines, wrong, first, held = 0, 0, "", 0
    for lines, line in enumerate(lines_of(path), start=1):
        if not line.endswith("\n") and len(line) < LONGEST_LINE:
            continue  # a host that lost power may leave half a line, or zero bytes that were never written
        try:
            record = record_of(line, f"{path}:{lines}")
            _refuse_more(record, sources, len(samples), held, f"{path}:{lines}")
        except FlagPerfError as error:
            wrong, first = wrong + 1, first or str(error).splitlines()[0]
            if len(samples) >= MOST_SAMPLES or held >= MOST_TEXT:
                break
            continue
        if isinstance(record, SourceInfo):
            sources[record.source] = record
        elif record.source not in sources or sources[record.source].scope in scopes:
            samples.append(_brief(record))
            held += _text_in(samples[-1])
    return Telemetry(str(path), tuple(sources.values()), tuple(samples), lines, wrong, first)


def _brief(sample: Sample) -> Sample:
    """The sample with the beginning of its error: each may hold another, and all are kept at once."""
    if len(sample.error) <= LONGEST_ERROR:
        return sample
    return replace(sample, error=shortened(sample.error, LONGEST_ERROR))


def _text_in(sample: Sample) -> int:
    return len(sample.source) + len(sample.device) + len(sample.error)


def _refuse_more(
    record: Sample | SourceInfo, sources: Mapping[str, SourceInfo], samples: int, held: int, where: str
) -> None:
    """A file of any size must not fill the memory."""
    if isinstance(record, SourceInfo) and record.source not in sources and len(sources) >= MOST_SOURCES:
        raise FlagPerfError(f"there are more than {MOST_SOURCES} sources", where=where)
    if samples >= MOST_SAMPLES:
        raise FlagPerfError(f"there are more than {MOST_SAMPLES} samples: the rest is not read", where=where)
    if held >= MOST_TEXT:
        raise FlagPerfError(
            f"its samples hold more than {MOST_TEXT} characters: the rest is not read", where=where
        )


def record_of(line: str, where: str) -> Sample | SourceInfo:
    """The record that a line of `telemetry.jsonl` is.

    Raises:
        FlagPerfError: it is none; names `where`.
    """
    try:
        record = _RECORD.validate_json(line, strict=True)
    except ValidationError as error:
        raise FlagPerfError(f"not a telemetry record: {first_problem(error)}", where=where) from error
    if not 0 <= record.time_ms <= LATEST_MS:
        raise FlagPerfError("not a telemetry record: time_ms is no time", where=where)
    return record
