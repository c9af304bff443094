"""Read what a node's monitors wrote: each line is checked; what is no record is left out and counted.

A day of 64 devices is millions of lines: msgspec reads them in half the time of pydantic, which reads all else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec.structs import astuple

from utils.errors import FlagPerfError
from utils.numbers import LARGEST_MEASURED
from utils.telemetry.records import Sample, Scope, SourceInfo, Telemetry
from utils.telemetry.series import SeriesTable
from utils.telemetry.windows import POWER_SCOPES
from utils.text_files import LONGEST_LINE, lines_of, one_line, shortened

LATEST_MS = 2**53  # JSON's whole numbers are exact up to here
# Of one node: eight chips that are sampled once a second for a week.
MOST_SAMPLES = 5_000_000
MOST_SOURCES = 1_000
MOST_DEVICES = 4_096  # of all its sources: each is reckoned with by itself
MOST_TEXT = 2**27  # characters of the samples' names and errors
LONGEST_TEXT = 4_000  # characters of a name or a note
LONGEST_ERROR = 200  # characters that are kept of what a device answered, and of what is wrong with a line

Time = Annotated[int, msgspec.Meta(ge=0, le=LATEST_MS)]
Number = Annotated[float, msgspec.Meta(ge=-LARGEST_MEASURED, le=LARGEST_MEASURED)]
Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]


class SampleLine(msgspec.Struct, tag="sample", tag_field="kind", forbid_unknown_fields=True, gc=False):
    """A `Sample` as it stands in a line, its fields in the same order; JSON has no NaN and no infinity."""

    time_ms: Time
    source: Text
    device: Text = ""
    utilisation: Number | None = None
    power_w: Number | None = None
    energy_mj: Number | None = None
    energy_range_mj: Number | None = None
    memory_used_mib: Number | None = None
    memory_total_mib: Number | None = None
    temperature_c: Number | None = None
    power_on: Text | None = None
    error: Text = ""


class SourceLine(msgspec.Struct, tag="source", tag_field="kind", forbid_unknown_fields=True):
    """A `SourceInfo` as it stands in a line, its fields in the same order."""

    time_ms: Time
    source: Text
    scope: Scope
    interval_s: Number
    note: Text = ""
    reason: Text = ""


_DECODER: msgspec.json.Decoder[SampleLine | SourceLine] = msgspec.json.Decoder(SampleLine | SourceLine)
_NOT_DECODED = (msgspec.DecodeError, RecursionError)


def read_telemetry(path: Path) -> Telemetry:
    """All the records of a `telemetry.jsonl`, for files that are known to be small: each sample is an object.

    Raises:
        FlagPerfError: the file cannot be read.
    """
    reader = TelemetryReader(path)
    return reader.telemetry(tuple(map(_sample, reader.samples())))


def read_power(path: Path) -> Telemetry:
    """The power and energy that a `telemetry.jsonl` tells of, in columns: a day of 64 devices fits into the memory.

    Raises:
        FlagPerfError: the file cannot be read.
    """
    reader, table = TelemetryReader(path, POWER_SCOPES), SeriesTable()
    for line in reader.samples():
        line.error = shortened(line.error, LONGEST_ERROR)
        table.take(line)
    return replace(reader.telemetry(), columns=table.by_source())


class TelemetryReader:
    """Reads a `telemetry.jsonl` line by line, and counts what of it is no record."""

    def __init__(self, path: Path, scopes: Collection[Scope] = tuple(Scope)) -> None:
        self.path, self.scopes = path, scopes
        self.sources: dict[str, SourceInfo] = {}
        self.lines = self.wrong = self._count = self._held = 0
        self.first_wrong = ""
        self._others: set[str] = set()  # sources of other scopes
        self._devices: set[tuple[str, str]] = set()

    def samples(self) -> Iterator[SampleLine]:
        """The samples of sources with these scopes, in the order written; a file of any size must not fill the memory.

        Raises:
            FlagPerfError: the file cannot be read.
        """
        for line in lines_of(self.path):
            self.lines += 1
            if line[-1] != "\n" and len(line) < LONGEST_LINE:
                return  # a host that lost power may leave half a line, or zero bytes that were never written
            try:
                record = _DECODER.decode(line)
            except _NOT_DECODED as error:
                self._note(_problem(error))
                continue
            if self._count >= MOST_SAMPLES or self._held >= MOST_TEXT:
                self._note(
                    f"it has more than {MOST_SAMPLES} samples, or they hold {MOST_TEXT} characters: "
                    "the rest is not read"
                )
                return
            if isinstance(record, SourceLine):
                self._take(record)
            elif record.source not in self._others and self._is_of_few(record):
                self._count += 1
                names = len(record.source) + len(record.device) + len(record.power_on or "")
                self._held += names + min(len(record.error), LONGEST_ERROR)
                yield record

    def telemetry(self, samples: tuple[Sample, ...] = ()) -> Telemetry:
        """What the file holds, with such of its samples as were kept."""
        held = (str(self.path), tuple(self.sources.values()), samples)
        return Telemetry(*held, self.lines, self.wrong, self.first_wrong)

    def _take(self, line: SourceLine) -> None:
        if line.source not in self.sources and len(self.sources) >= MOST_SOURCES:
            self._note(f"there are more than {MOST_SOURCES} sources")
            return
        self.sources[line.source] = SourceInfo(*astuple(line))
        (self._others.discard if line.scope in self.scopes else self._others.add)(line.source)

    def _is_of_few(self, line: SampleLine) -> bool:
        device = (line.source, line.device)
        if device not in self._devices:
            if len(self._devices) >= MOST_DEVICES:
                self._note(f"there are more than {MOST_DEVICES} devices")
                return False
            self._devices.add(device)
        return True

    def _note(self, problem: str) -> None:
        self.wrong += 1
        self.first_wrong = self.first_wrong or f"{self.path}:{self.lines}: {problem}"


def record_of(line: str, where: str) -> Sample | SourceInfo:
    """The record that a line of `telemetry.jsonl` is.

    Raises:
        FlagPerfError: it is none; names `where`.
    """
    try:
        record = _DECODER.decode(line)
    except _NOT_DECODED as error:
        raise FlagPerfError(_problem(error), where=where) from error
    if isinstance(record, SourceLine):
        return SourceInfo(*astuple(record))
    return _sample(record)


def _problem(error: Exception) -> str:
    return f"not a telemetry record: {shortened(one_line(str(error)), LONGEST_ERROR)}"


def _sample(line: SampleLine) -> Sample:
    """With the beginning of its error: each may hold another, and all are kept at once."""
    line.error = shortened(line.error, LONGEST_ERROR)
    return Sample(*astuple(line))
