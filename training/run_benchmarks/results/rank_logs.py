"""The ranks' logs of a round, as they were collected: rank 0's events, who reported FINISHED, what cannot be read.

A log may be of any size: it is read line by line, and of each kind of event the first and the last are kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from utils.errors import FlagPerfError
from utils.events import PREFIX, Event, EventName, parse_line
from utils.node import rank_log_name
from utils.text_files import LONGEST_LINE, lines_of

RANK_LOG = re.compile(re.escape(rank_log_name("N")).replace("N", r"(\d+)"))
NAMES = frozenset(name.value for name in EventName)


@dataclass(frozen=True)
class RankLogs:
    """What the logs of all ranks hold.

    events: global rank 0's, in the order written: of each name of FlagPerf's own the first and the last.
    finished: global rank -> how often it reported FINISHED, those that did only.
    errors: a line for each log or folder that is there and cannot be read, and for each event that is too long.
    """

    events: Sequence[Event] = ()
    finished: Mapping[int, int] = field(default_factory=dict)
    errors: Sequence[str] = ()


def read_rank_logs(folders: Sequence[Path]) -> RankLogs:
    """The logs in the node folders `folders`; a folder that was not collected does not exist."""
    events: list[Event] = []
    finished: dict[int, int] = {}
    errors: list[str] = []
    for folder in folders:
        try:
            for rank, path in _logs_in(folder):
                log = _Log(rank, path)
                log.read()
                events += log.events()
                errors += log.errors
                if log.finished:
                    finished[rank] = finished.get(rank, 0) + log.finished
        except OSError as error:
            errors.append(f"{folder}: cannot be listed: {error.strerror}")
    return RankLogs(events, dict(sorted(finished.items())), errors)


def _logs_in(folder: Path) -> list[tuple[int, Path]]:
    try:
        names = ((RANK_LOG.fullmatch(path.name), path) for path in folder.iterdir())
        return sorted((int(match[1]), path) for match, path in names if match)
    except FileNotFoundError:
        return []


class _Log:
    """A rank's log, of which no more is kept than a line and a few events."""

    def __init__(self, rank: int, path: Path) -> None:
        self.rank, self.path = rank, path
        self.finished = 0
        self.errors: list[str] = []
        self._first: dict[str, tuple[int, Event]] = {}
        self._last: dict[str, tuple[int, Event]] = {}

    def read(self) -> None:
        """Read it to its end, or to where it cannot be read."""
        try:
            for number, event in self._events():
                self.finished += event.name == EventName.FINISHED
                if event.name in NAMES:
                    self._first.setdefault(event.name, (number, event))
                    self._last[event.name] = number, event
        except FlagPerfError as error:
            self.errors.append(str(error))

    def events(self) -> list[Event]:
        """Of rank 0 the first and the last of each name, in the order written."""
        kept = dict((*self._first.values(), *self._last.values()))
        return [kept[number] for number in sorted(kept)] if self.rank == 0 else []

    def _events(self) -> Iterator[tuple[int, Event]]:
        """The events with the numbers of their lines; of other ranks FINISHED alone."""
        # only lines that may be it are parsed: the events of a thousand ranks would take minutes
        wanted = PREFIX if self.rank == 0 else EventName.FINISHED.value
        for number, line in enumerate(lines_of(self.path)):
            if wanted not in line:
                continue
            event = parse_line(line)
            if event is not None:
                yield number, event
            elif len(line) == LONGEST_LINE and PREFIX in line:
                self.errors.append(
                    f"{self.path}: an event of more than {LONGEST_LINE} characters is left out"
                )
