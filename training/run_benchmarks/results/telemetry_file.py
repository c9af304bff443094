"""Read what a node's monitors wrote: each line is checked; what is no record is left out and counted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from run_benchmarks.reading import first_problem
from utils.errors import FlagPerfError
from utils.telemetry.records import LONGEST_TEXT, Sample, Scope, SourceInfo, Telemetry
from utils.text_files import LONGEST_LINE, lines_of, shortened

_RECORD: TypeAdapter[Sample | SourceInfo] = TypeAdapter(
    Annotated[Sample | SourceInfo, Field(discriminator="kind")]
)
_SAMPLES = TypeAdapter(list[Sample])
_KIND = '"kind": "sample"'  # as `record_line` writes it
LATEST_MS = 2**53  # JSON's whole numbers are exact up to here
# Of one node: eight chips that are sampled once a second for a week.
MOST_SAMPLES = 5_000_000
MOST_SOURCES = 1_000
MOST_TEXT = 2**27  # characters of the samples' names and errors
BATCH_LINES, BATCH_CHARACTERS = 1_000, 2**20  # that are parsed at once
LONGEST_ERROR = 200  # characters that are kept of what a device answered


def read_telemetry(path: Path, scopes: Collection[Scope] = tuple(Scope)) -> Telemetry:
    """The records of a `telemetry.jsonl`; no more samples are held than those of sources with these scopes.

    Raises:
        FlagPerfError: the file cannot be read.
    """
    reader = TelemetryReader(path, scopes)
    samples = tuple(sample for batch in reader.batches() for sample in batch)
    return reader.telemetry(samples)


class TelemetryReader:
    """Reads a `telemetry.jsonl` batch by batch, and counts what of it is no record."""

    def __init__(self, path: Path, scopes: Collection[Scope] = tuple(Scope)) -> None:
        self.path, self.scopes = path, scopes
        self.sources: dict[str, SourceInfo] = {}
        self.lines = self.wrong = self._count = self._held = 0
        self.first_wrong = ""
        self._is_over = False

    def batches(self) -> Iterator[list[Sample]]:
        """The samples of sources with these scopes, in the order written.

        Raises:
            FlagPerfError: the file cannot be read.
        """
        for lines in _batched(lines_of(self.path)):
            samples = _samples_in(lines)
            if samples is None or self._is_near_limits(len(lines)):
                yield list(self._one_by_one(lines))
            else:
                self.lines += len(lines)
                yield self._kept(samples)
            if self._is_over:
                break

    def telemetry(self, samples: tuple[Sample, ...] = ()) -> Telemetry:
        """What the file holds, with such of its samples as were kept."""
        held = (str(self.path), tuple(self.sources.values()), samples)
        return Telemetry(*held, self.lines, self.wrong, self.first_wrong)

    def _one_by_one(self, lines: Sequence[str]) -> Iterator[Sample]:
        for line in lines:
            self.lines += 1
            if not line.endswith("\n") and len(line) < LONGEST_LINE:
                continue  # a host that lost power may leave half a line, or zero bytes that were never written
            where = f"{self.path}:{self.lines}"
            try:
                record = record_of(line, where)
                self._refuse_more(record, where)
            except FlagPerfError as error:
                self.wrong, self.first_wrong = self.wrong + 1, self.first_wrong or str(error).splitlines()[0]
                if self._is_full:
                    self._is_over = True
                    return
                continue
            if isinstance(record, SourceInfo):
                self.sources[record.source] = record
            else:
                yield from self._kept([record])

    def _kept(self, samples: Iterable[Sample]) -> list[Sample]:
        """Those of them that are to be kept."""
        others = {name for name, info in self.sources.items() if info.scope not in self.scopes}
        kept = [_brief(each) if each.error else each for each in samples if each.source not in others]
        self._count += len(kept)
        self._held += sum(len(each.source) + len(each.device) + len(each.error) for each in kept)
        return kept

    def _refuse_more(self, record: Sample | SourceInfo, where: str) -> None:
        """A file of any size must not fill the memory."""
        is_new = isinstance(record, SourceInfo) and record.source not in self.sources
        if is_new and len(self.sources) >= MOST_SOURCES:
            raise FlagPerfError(f"there are more than {MOST_SOURCES} sources", where=where)
        if self._count >= MOST_SAMPLES:
            raise FlagPerfError(
                f"there are more than {MOST_SAMPLES} samples: the rest is not read", where=where
            )
        if self._held >= MOST_TEXT:
            raise FlagPerfError(
                f"its samples hold more than {MOST_TEXT} characters: the rest is not read", where=where
            )

    @property
    def _is_full(self) -> bool:
        return self._count >= MOST_SAMPLES or self._held >= MOST_TEXT

    def _is_near_limits(self, samples: int) -> bool:
        """Whether so many more may be too many: then each is looked at before it is taken."""
        text = samples * (2 * LONGEST_TEXT + LONGEST_ERROR)
        return self._count + samples > MOST_SAMPLES or self._held + text > MOST_TEXT


def _batched(lines: Iterable[str]) -> Iterator[list[str]]:
    """Several lines at once, for a line by itself takes the parser twice as long."""
    batch: list[str] = []
    characters = 0
    for line in lines:
        batch.append(line)
        characters += len(line)
        if len(batch) == BATCH_LINES or characters > BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _samples_in(lines: Sequence[str]) -> list[Sample] | None:
    """The samples of lines of which each is one; None where any is not, and each must be looked at by itself.

    A sample has no braces but in texts, and no text goes on in another line: so where each line begins and ends
    with a brace, and there are as many samples as lines, each line is one. Its kind, which a `Sample` need not be
    given, can stand before a colon as a key alone.
    """
    if not all(line.startswith("{") and line.endswith("}\n") and _KIND in line for line in lines):
        return None
    try:
        samples = _SAMPLES.validate_json(f"[{','.join(lines)}]", strict=True)
    except ValidationError:
        return None
    is_whole = len(samples) == len(lines) and all(0 <= sample.time_ms <= LATEST_MS for sample in samples)
    return samples if is_whole else None


def _brief(sample: Sample) -> Sample:
    """The sample with the beginning of its error: each may hold another, and all are kept at once."""
    if len(sample.error) <= LONGEST_ERROR:
        return sample
    return replace(sample, error=shortened(sample.error, LONGEST_ERROR))


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
