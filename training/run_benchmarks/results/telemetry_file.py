"""Read what a node's monitors wrote, and the controller of what is outside the node: each line is checked.

What is no record is left out and counted. Times are put on the round's time line.

A day of 64 devices is millions of lines: msgspec reads them in half the time of pydantic, which reads all else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

from msgspec.structs import astuple

from run_benchmarks.names import home_of, meter_file_of
from run_benchmarks.results.clocks import Placement, Shift
from run_benchmarks.results.left_out import without_implausible
from run_benchmarks.results.telemetry_lines import (
    LONGEST_ERROR,
    MOST_DEVICES,
    NOT_DECODED,
    SourceLine,
    TickLine,
    decoded,
    why_none,
)
from utils.errors import FlagPerfError
from utils.telemetry.clock_steps import ClockSteps
from utils.telemetry.power_sources import WITH_POWER
from utils.telemetry.records import Sample, Scope, SourceInfo, Telemetry, samples_of
from utils.telemetry.series import ENERGY, ENERGY_RANGE, POWER, SeriesTable
from utils.text_files import LONGEST_LINE, lines_of, shortened_to_words

# Of one node, a device's readings of a moment being one: 64 chips that are sampled ten times a second for ten hours.
MOST_SAMPLES = 25_000_000
MOST_LINES = 5_000_000
MOST_SOURCES = 1_000
MOST_NAMES = (
    2**16
)  # of devices, in all the lists of them that ticks have: one that comes or goes makes a further list
MOST_TEXT = 2**27  # characters of the samples' names and errors
AS_WRITTEN = Placement()


def read_telemetry(path: Path) -> Telemetry:
    """All the records of a `telemetry.jsonl`, for files that are known to be small: each sample is an object.

    Raises:
        FlagPerfError: the file cannot be read.
    """
    reader = TelemetryReader(path)
    samples = tuple(sample for tick in reader.ticks() for sample in samples_of(tick))
    return reader.telemetry(samples)


def read_power(
    path: Path,
    placement: Placement = AS_WRITTEN,
    take: Callable[[TickLine], None] | None = None,
    *,
    only_meters: bool = False,
) -> Telemetry:
    """The power and energy that a `telemetry.jsonl` tells of, in columns: a day of 64 devices fits into the memory.

    What the controller read of meters outside the node is among it; readings that cannot be are not.

    Args:
        placement: on which time line the readings stand.
        take: what else reads each tick, of whichever source.
        only_meters: what the node itself wrote is not looked at.

    Raises:
        FlagPerfError: the file cannot be read.
    """
    reader = TelemetryReader(path, placement=placement, only_meters=only_meters)
    table = SeriesTable((POWER, ENERGY, ENERGY_RANGE))
    for tick in reader.ticks():
        info = reader.sources.get(tick.source)
        if info is None or info.scope in WITH_POWER:
            table.take(tick)
        if take is not None:
            take(tick)
    return without_implausible(replace(reader.telemetry(), columns=table.by_source()))


class TelemetryReader:
    """Reads a `telemetry.jsonl` line by line, and counts what of it is no record.

    Where the controller read meters outside the node, their file is read with it. A source that both name is the
    controller's: what comes from a node may name any.
    """

    def __init__(
        self,
        path: Path,
        scopes: Collection[Scope] = tuple(Scope),
        placement: Placement = AS_WRITTEN,
        *,
        only_meters: bool = False,
    ) -> None:
        self.path, self.scopes, self._placement = path, scopes, placement
        self._only_meters = only_meters
        self._meters: set[str] = set()  # sources that the controller reads
        self._of_meters = (0, 0)  # their lines, and how many of these are wrong
        self.sources: dict[str, SourceInfo] = {}
        self.lines = self.wrong = self._count = self._held = 0
        self.first_wrong = ""
        self._others: set[str] = set()  # sources of other scopes
        self._devices: set[tuple[str, str]] = set()
        self._lists: set[tuple[str, tuple[str, ...]]] = set()  # of devices, with their source
        self._names = 0  # in these lists
        self._clocks = ClockSteps(), ClockSteps(of_controller=True)

    def ticks(self) -> Iterator[TickLine]:
        """The ticks of sources with these scopes, in the order written; a file of any size must not fill the memory.

        Raises:
            FlagPerfError: the file cannot be read; where there are meters, it need not be there.
        """
        of_meters = meter_file_of(self.path.parent)
        if of_meters.is_file():
            yield from self._ticks(of_meters, self._placement.controllers, self._clocks[1])
            self._meters = set(self.sources)
            self._of_meters = self.lines, self.wrong
        if self._only_meters:
            return
        if self.path.exists() or not self._meters:
            yield from self._ticks(self.path, self._placement.own, self._clocks[0])

    def _ticks(self, path: Path, shift: Shift, clock: ClockSteps) -> Iterator[TickLine]:
        for line in lines_of(path, home_of(path)):
            self.lines += 1
            if self.lines > MOST_LINES or self._count >= MOST_SAMPLES or self._held >= MOST_TEXT:
                self._note(
                    f"it has more than {MOST_LINES} lines or {MOST_SAMPLES} samples, or they hold {MOST_TEXT} "
                    "characters: the rest is not read",
                    path,
                )
                return
            if line[-1] != "\n" and len(line) < LONGEST_LINE:
                return  # a host that lost power may leave half a line, or zero bytes that were never written
            try:
                record = decoded(line)
            except NOT_DECODED as error:
                self._note(why_none(error), path)
                continue
            if record.source in self._meters:
                self._note(f"{record.source} is a source that the controller reads", path)
                continue
            if isinstance(record, SourceLine):
                self._take(record, path)
                if record.reason:
                    clock.begin(record.source)
            elif record.source not in self._others and self._is_of_few(record, path):
                time_ms, record.time_ms = record.time_ms, shift(record.time_ms)
                clock.take(record.source, time_ms, record.time_ms, record.monotonic_ms)
                self._count += len(record.devices)
                if record.error:
                    record.error = [shortened_to_words(error, LONGEST_ERROR) for error in record.error]
                self._held += sum(map(len, record.error or ())) + sum(
                    len(text or "") for text in record.power_on or ()
                )
                yield record

    def telemetry(self, samples: tuple[Sample, ...] = ()) -> Telemetry:
        """What the file holds, with such of its samples as were kept."""
        held = (str(self.path), tuple(self.sources.values()), samples)
        whole = Telemetry(*held, self.lines, self.wrong, self.first_wrong, None, frozenset(self._meters))
        lines, wrong = self._of_meters
        steps = tuple(step for clock in self._clocks for step in clock.found())
        return replace(
            whole,
            node_lines=self.lines - lines,
            node_wrong=self.wrong - wrong,
            clock_steps=steps,
            clock_watched_ms=self._clocks[0].watched_ms,
        )

    def _take(self, line: SourceLine, path: Path) -> None:
        if line.source not in self.sources and len(self.sources) >= MOST_SOURCES:
            self._note(f"there are more than {MOST_SOURCES} sources", path)
            return
        self.sources[line.source] = SourceInfo(*astuple(line))
        (self._others.discard if line.scope in self.scopes else self._others.add)(line.source)

    def _is_of_few(self, tick: TickLine, path: Path) -> bool:
        listed = (tick.source, tuple(tick.devices))
        if listed in self._lists:
            return True
        devices = {(tick.source, device) for device in tick.devices} - self._devices
        if len(self._devices) + len(devices) > MOST_DEVICES or self._names + len(tick.devices) > MOST_NAMES:
            self._note(f"there are more than {MOST_DEVICES} devices, or too many lists of them", path)
            return False
        self._devices |= devices
        self._lists.add(listed)
        self._names += len(tick.devices)
        self._held += sum(map(len, listed[1])) + len(tick.source)
        return True

    def _note(self, problem: str, path: Path) -> None:
        self.wrong += 1
        self.first_wrong = self.first_wrong or f"{path}:{self.lines}: {problem}"


def record_of(line: str, where: str) -> TickLine | SourceInfo:
    """The record that a line of `telemetry.jsonl` is.

    Raises:
        FlagPerfError: it is none; names `where`.
    """
    try:
        record = decoded(line)
    except NOT_DECODED as error:
        raise FlagPerfError(why_none(error), where=where) from error
    return SourceInfo(*astuple(record)) if isinstance(record, SourceLine) else record
