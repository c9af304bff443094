"""The ranks' logs of a round, as they were collected: rank 0's events, who reported FINISHED, what cannot be read.

A log may be of any size: only lines with FlagPerf's prefix are looked at, so many of those that hold no event, and of
each kind of event the first and the last are kept. A log counts only where its rank ran: what another node brings home
as rank 0's is not rank 0's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from run_benchmarks.results.round_result import few
from utils.errors import FlagPerfError
from utils.events import PREFIX, Event, EventName, parse_line
from utils.node import rank_log_name
from utils.text_files import LONGEST_LINE, marked_lines_of

RANK_LOG = re.compile(re.escape(rank_log_name("N")).replace("N", r"(0|[1-9]\d{0,8})"), re.ASCII)
FINISHED = EventName.FINISHED.value
MOST_NAMED = 20  # logs that cannot be read, or do not count
MOST_NO_EVENTS = 100_000  # lines that claim to hold an event; an honest log has some that were cut off
NAMES = frozenset(name.value for name in EventName)


@dataclass(frozen=True)
class RankLogs:
    """What the logs of all ranks hold.

    events: global rank 0's, in the order written: of each name of FlagPerf's own the first and the last.
    finished: global rank -> how often it reported FINISHED, those that did only.
    errors: a line for each log or folder that is there and cannot be read, and for one with events that are too long.
    left_out: a line for what else does not count: logs in folders of other nodes, lines that hold no event.
    """

    events: Sequence[Event] = ()
    finished: Mapping[int, int] = field(default_factory=dict)
    errors: Sequence[str] = ()
    left_out: Sequence[str] = ()


def read_rank_logs(folders: Sequence[Path], nproc: int = 1, *, own_script: bool = False) -> RankLogs:
    """The logs in the node folders `folders`, by node rank; a folder that was not collected does not exist.

    Args:
        nproc: ranks of a node.
        own_script: the case does without the driver; then events need not name the global rank that wrote them.
    """
    events: list[Event] = []
    finished: dict[int, int] = {}
    errors: list[str] = []
    left_out: list[str] = []
    for node, folder in enumerate(folders):
        try:
            for rank, path in _logs_in(folder):
                if rank // nproc != node:
                    left_out.append(
                        f"{path}: rank {rank} does not run on node {node}: its log does not count"
                    )
                    continue
                log = _Log(rank, path, own_script)
                log.read()
                events += log.events()
                errors += log.errors
                left_out += log.left_out()
                if log.finished:
                    finished[rank] = log.finished
        except OSError as error:
            errors.append(f"{folder}: cannot be listed: {error.strerror}")
    return RankLogs(
        events, dict(sorted(finished.items())), few(errors, MOST_NAMED), few(left_out, MOST_NAMED)
    )


def rank0_events(folder: Path, *, own_script: bool = False) -> Iterator[Event]:
    """Every event of global rank 0's log in its node's folder, in the order written; none where there is no log.

    Raises:
        FlagPerfError: it cannot be read, or not to its end.
    """
    path = folder / rank_log_name(0)
    if path.exists():
        yield from (event for _, event in _Log(0, path, own_script).numbered_events())


def _logs_in(folder: Path) -> list[tuple[int, Path]]:
    try:
        names = ((RANK_LOG.fullmatch(path.name), path) for path in folder.iterdir())
        return sorted((int(match[1]), path) for match, path in names if match)
    except FileNotFoundError:
        return []


class _Log:
    """A rank's log, of which no more is kept than a line and a few events."""

    def __init__(self, rank: int, path: Path, own_script: bool) -> None:
        self.rank, self.path, self.own_script = rank, path, own_script
        self.finished = 0
        self.errors: list[str] = []
        self._no_events = self._others = self._too_long = 0
        self._first: dict[str, tuple[int, Event]] = {}
        self._last: dict[str, tuple[int, Event]] = {}

    def read(self) -> None:
        """Read it to its end, or to where it cannot be read."""
        try:
            for number, event in self.numbered_events():
                self.finished += event.name == FINISHED
                if event.name in NAMES:
                    self._first.setdefault(event.name, (number, event))
                    self._last[event.name] = number, event
        except FlagPerfError as error:
            self.errors.append(str(error))
        if self._too_long:
            message = f"{self._too_long} event(s) of more than {LONGEST_LINE} characters are left out"
            self.errors.append(f"{self.path}: {message}")

    def events(self) -> list[Event]:
        """Of rank 0 the first and the last of each name, in the order written."""
        kept = dict((*self._first.values(), *self._last.values()))
        return [kept[number] for number in sorted(kept)] if self.rank == 0 else []

    def left_out(self) -> list[str]:
        """What was passed over, counted."""
        counts = {
            f"line(s) with {PREFIX} that hold no event": self._no_events,
            f"event(s) that another rank than {self.rank} wrote": self._others,
        }
        return [f"{self.path}: {count} {what} are left out" for what, count in counts.items() if count]

    def numbered_events(self) -> Iterator[tuple[int, Event]]:
        """The events with the places where they stand; of other ranks FINISHED alone.

        Raises:
            FlagPerfError: it cannot be read, or has so many lines without an event that the rest is not read.
        """
        for place, line in marked_lines_of(self.path, PREFIX):
            # only lines that may be it are parsed: the events of a thousand ranks would take minutes
            if self.rank and FINISHED not in line:
                continue
            event = parse_line(line)
            if event is None:
                self._note(line)
            elif self.rank == 0 and event.rank != 0 and not self.own_script:
                self._others += 1
            else:
                yield place, event

    def _note(self, line: str) -> None:
        """Count a line that holds no event; the last one may have been cut off."""
        if line.endswith(("\r", "\n")):
            self._no_events += 1
        else:
            self._too_long += len(line.encode()) >= LONGEST_LINE
        if self._no_events > MOST_NO_EVENTS:
            message = f"more than {MOST_NO_EVENTS} lines with {PREFIX} hold no event: the rest is not read"
            raise FlagPerfError(message, where=str(self.path))
