"""The entries of a run's journal, which may be a stranger's: those that can be read, and whether these are all."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from run_benchmarks.reading import Allowance, object_in, values_in
from utils.errors import FlagPerfError
from utils.text_files import opened

LARGEST_JOURNAL = 2**29  # bytes: a round of 256 nodes has some 300,000, one of a single node 4,000
LONGEST_ENTRY = 2**24  # characters: what was seen of ten thousand nodes has a third of it
# So much is kept: ten thousand rounds of 256 nodes have less, and of a few nodes also where each was run four times.
MOST_ENTRIES, MOST_VALUES = 500_000, 4_000_000
MOST_WRONG = 50
REMEDY = "take out of it what is no whole entry of the run's own, and do this again"
ENDS = ("round_started", "attempt_ended", "round_ended")
PASSING = ("seen", "runs")  # what is asked for of a round that goes on alone, and as it was last seen
UNASKED = "started"  # of each node and round there is one, for who reads the file


@dataclass
class JournalEntries:
    """What can be read of a journal.

    wrong: why other lines cannot. gap: the first reason why they are not all that a controller has written; None where
    they are: of one that was killed the last line may be half a line, whether or not another has gone on behind it.
    """

    entries: list[Mapping[str, Any]] = field(default_factory=list)
    wrong: list[FlagPerfError] = field(default_factory=list)
    gap: FlagPerfError | None = None


def read_journal(path: Path) -> JournalEntries:
    """What can be read of the journal in a file; nothing where there is none."""
    reader = _Reader()
    try:
        for number, line in enumerate(_lines(path), 1):
            reader.take(line, f"{path}:{number}")
    except FlagPerfError as error:
        reader.note_gap(error)
        reader.read.wrong.append(error)
    return reader.read


def _lines(path: Path) -> Iterator[str]:
    try:
        with (
            opened(path, LARGEST_JOURNAL) as binary,
            io.TextIOWrapper(binary, encoding="utf-8", errors="replace", newline="\n") as file,
        ):
            while line := file.readline(LONGEST_ENTRY):
                yield line
    except FlagPerfError as error:
        if not isinstance(error.__cause__, (FileNotFoundError, NotADirectoryError)):
            raise


class _Reader:
    """Takes line after line of a journal."""

    def __init__(self) -> None:
        self.read = JournalEntries()
        self._allowance = Allowance(MOST_VALUES)
        self._half: FlagPerfError | None = None  # the line before, if it is half a line
        # case and round -> the places of its entries that have something PASSING
        self._passing = defaultdict[tuple[object, object], list[int]](list)

    def take(self, line: str, where: str) -> None:
        """Keep what the line says; FlagPerfError where nothing more is read."""
        try:
            entry = object_in(line, where, self._allowance)
        except FlagPerfError as error:
            self._note(error)
            return
        if self._half and entry.get("event") != "run_resumed":
            self.note_gap(self._half)
        self._half = None
        if len(self.read.entries) == MOST_ENTRIES:
            raise FlagPerfError(f"is more than the {MOST_ENTRIES} entries that are taken", where=where)
        self._keep(entry)

    def note_gap(self, error: FlagPerfError) -> None:
        """Not all that was written is read, and this is why."""
        message = f"not all of the run's journal can be read: {error.message}"
        self.read.gap = self.read.gap or FlagPerfError(message, where=error.where, remedy=REMEDY)

    def _note(self, error: FlagPerfError) -> None:
        """Remember what is wrong with a line; FlagPerfError where there are too many of them."""
        self.read.wrong.append(error)
        for lost in (self._half, None if isinstance(error.__cause__, ValueError) else error):
            if lost:
                self.note_gap(lost)
        self._half = error
        if len(self.read.wrong) == MOST_WRONG:
            which = f"the {MOST_WRONG}th that cannot be read"
            raise FlagPerfError(f"{which}: what follows is not looked at", where=error.where)

    def _keep(self, entry: Mapping[str, Any]) -> None:
        event, case, number = (entry.get(name) for name in ("event", "case", "round"))
        if event == UNASKED:
            self._without(entry, entry)
            return
        is_of_round = isinstance(case, str) and type(number) is int
        if is_of_round and (event in ENDS or "seen" in entry):
            for place in self._passing.pop((case, number), ()):
                self.read.entries[place] = self._without(PASSING, self.read.entries[place])
        if is_of_round and not entry.keys().isdisjoint(PASSING):
            self._passing[case, number].append(len(self.read.entries))
        self.read.entries.append(entry)

    def _without(self, names: Collection[str], entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """The entry without what has these names, in whose place others may have as many values."""
        self._allowance.values += values_in(
            json.dumps({name: entry[name] for name in names if name in entry})
        )
        return {name: value for name, value in entry.items() if name not in names}
