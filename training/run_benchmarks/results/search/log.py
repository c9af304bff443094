"""The controller's log of a search, as it was collected: its events, read by models, and what cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from run_benchmarks.names import home_of
from run_benchmarks.reading import parsed
from run_benchmarks.results.rank_logs import FINISHED
from utils.errors import FlagPerfError
from utils.events import PREFIX, Event, parse_line
from utils.search.account import Account
from utils.search.events import MOST_BYTES, MOST_EVENTS, RECORDS, SearchRecord, SearchStart
from utils.text_files import marked_lines_of

# The name of an event where its controller writes it.
_NAME = rb' \{"event": "(\w{1,64})"'
MOST_NAMED = 20  # lines that hold none


@dataclass(frozen=True)
class Told:
    """An event, and when it happened by the wall clock of the controller's host, in ms since the epoch."""

    record: SearchRecord
    time_ms: int


@dataclass
class SearchLog:
    """What counts of a log: what stands behind the last start.

    finished: the first FINISHED of the log and, of several, the last; each may be long, and `finishes` says how many
    there are. wrong: a line for each event that is none, and why the log was not read.
    """

    told: list[Told] = field(default_factory=list)
    account: Account = field(default_factory=Account)
    finished: list[Event] = field(default_factory=list)
    finishes: int = 0
    wrong: list[str] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """The next event of the log."""
        if event.name == FINISHED:
            self.finished[1:] = [event]
            self.finishes += 1
        elif kind := RECORDS.get(event.name):
            try:
                record: SearchRecord = parsed(kind, event.value, event.name)
            except FlagPerfError as error:
                self._note(str(error))
                return
            if isinstance(record, SearchStart):
                self.told, self.wrong = [], []
            self.account.take(record)
            self.told.append(Told(record, event.time_ms))

    def read(self, path: Path) -> None:
        """All of a file."""
        try:
            for event in _events(path):
                self.take(event)
        except FlagPerfError as error:
            self.wrong.append(str(error))

    def _note(self, problem: str) -> None:
        if len(self.wrong) < MOST_NAMED:
            self.wrong.append(problem)


def read_search(path: Path) -> SearchLog:
    """The search that a controller's log, or what was followed of it, tells of; an empty one without a file."""
    log = SearchLog()
    if path.is_file():
        log.read(path)
    return log


def _events(path: Path) -> Iterator[Event]:
    wanted = {name.encode() for name in (*RECORDS, FINISHED)}
    count = size = 0
    for _, name, line in marked_lines_of(path, PREFIX, _NAME, below=home_of(path)):
        if name not in wanted:
            continue
        count, size = count + 1, size + len(line)
        if count > MOST_EVENTS or size > MOST_BYTES:
            what = f"has more than {MOST_EVENTS} events of a search, or {MOST_BYTES} bytes of them"
            raise FlagPerfError(what, where=str(path))
        event = parse_line(line.decode("utf-8", "replace"))
        if event:
            yield event
