"""The ranks' logs of a round, as they were collected: rank 0's events, who reported FINISHED, what cannot be read.

A log may be of any size and hold any number of lines that look like events: the work for one is bounded, by numbers
that no honest log reaches where it matters. Of each name the first events and the last are looked at, whatever
stands between them; where the lines themselves are too many, the beginning and the end of the log. A log counts only
where its rank ran: what another node brings home as rank 0's is not rank 0's.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path

from run_benchmarks.names import home_of
from run_benchmarks.results.phases import PhaseEvents
from run_benchmarks.results.round_result import few
from utils.errors import FlagPerfError
from utils.events import PREFIX, Event, EventName, parse_line
from utils.node import rank_log_name
from utils.text_files import LARGEST_LOG, LONGEST_LINE, marked_lines_of

RANK_LOG = re.compile(re.escape(rank_log_name("N")).replace("N", r"(0|[1-9]\d{0,8})"), re.ASCII)
FINISHED, STEP_END = EventName.FINISHED.value, EventName.STEP_END.value
MOST_NAMED = 20  # logs that cannot be read, or do not count
NAMES = frozenset(name.value for name in EventName)
# Of the others there are as many as steps, and a verdict needs the first and the last of them alone.
SELDOM = NAMES - {EventName.STEP_BEGIN.value, STEP_END}
# The name of an event where FlagPerf writes it. What has it elsewhere is looked at too, with what holds no event.
_NAME = rb'[ \t]{0,9}\{[ \t]{0,9}"event"[ \t]{0,9}:[ \t]{0,9}"([\w. -]{0,64})"'
_SIGN = PREFIX.encode()
_EVENT = re.compile(re.escape(_SIGN) + _NAME)
MOST_LINES = 15_000_000  # with the prefix: a night at a hundred steps a second writes half as many
END_BYTES = 2**24  # that are looked at of a log with more lines
# To read an event is as much work as it has values, and bytes by 32, and LINE_WORK: two million are a second.
LINE_WORK = 40
MOST_WORK = 600_000  # for the events of a name: ten thousand ordinary ones
PHASES_STEP_WORK = 20_000  # where the first few hundred are
MOST_STEP_WORK = 60_000_000  # for those of STEP_END where each is wanted: a million
LAST_LINES = 8  # of a name: the last of all may have been cut off, or be another rank's

_Line = tuple[int, bytes | None, bytes]  # where it stands, the name of the event, all of it


@dataclass(frozen=True)
class RankLogs:
    """What the logs of all ranks hold.

    events: global rank 0's, in the order written: of each name of FlagPerf's own the first and the last.
    finished: global rank -> how often it reported FINISHED, those that did only.
    errors: a line for each log or folder that is there and cannot be read, and for one with events that are too long.
    left_out: a line for what else does not count: logs in folders of other nodes, lines that hold no event, and those
        that are too many to be looked at.
    met: rank 0's first event that `meets` what the reader asked for.
    phases: node rank -> what the first rank of the node tells of its phases; a node without its log has none.
    """

    events: Sequence[Event] = ()
    finished: Mapping[int, int] = field(default_factory=dict)
    errors: Sequence[str] = ()
    left_out: Sequence[str] = ()
    met: Event | None = None
    phases: Mapping[int, PhaseEvents] = field(default_factory=dict)


def _never(event: Event) -> bool:
    return False


def read_rank_logs(
    folders: Sequence[Path],
    nproc: int = 1,
    followed: Path | None = None,
    *,
    own_script: bool = False,
    meets: Callable[[Event], bool] = _never,
) -> RankLogs:
    """The logs in the node folders `folders`, by node rank; a folder that was not collected does not exist.

    Args:
        nproc: ranks of a node.
        followed: what stands in for global rank 0's log, which was not collected.
        own_script: the case does without the driver; then events need not name the global rank that wrote them.
    """
    events: list[Event] = []
    finished: dict[int, int] = {}
    errors: list[str] = []
    left_out: list[str] = []
    phases: dict[int, PhaseEvents] = {}
    met = None
    for node, folder in enumerate(folders):
        try:
            for rank, path in (*([(0, followed)] if followed and node == 0 else ()), *_logs_in(folder)):
                if rank // nproc != node:
                    left_out.append(
                        f"{path}: rank {rank} does not run on node {node}: its log does not count"
                    )
                    continue
                is_first = rank == node * nproc
                log = _Kept(RankLog(rank, path, own_script=own_script, is_first=is_first), meets)
                if is_first:
                    phases.setdefault(node, log.phases)
                events += log.events()
                met = met or log.met
                errors += log.errors
                left_out += log.log.left_out()
                if log.finished:
                    finished[rank] = log.finished
        except OSError as error:
            errors.append(f"{folder}: cannot be listed: {error.strerror}")
    named = (few(errors, MOST_NAMED), few(left_out, MOST_NAMED))
    return RankLogs(events, dict(sorted(finished.items())), *named, met, phases)


def _logs_in(folder: Path) -> list[tuple[int, Path]]:
    try:
        names = ((RANK_LOG.fullmatch(path.name), path) for path in folder.iterdir())
        return sorted((int(match[1]), path) for match, path in names if match)
    except FileNotFoundError:
        return []


@dataclass
class _OfName:
    """The lines of a name: how much work there may still be on them, and those that wait for the end of the log."""

    work_left: int
    waiting: deque[tuple[int, bytes]] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    passed_over: int = 0

    def wait(self, place: int, line: bytes) -> None:
        """Keep a line for the end, in place of the oldest if there are enough."""
        self.passed_over += len(self.waiting) == LAST_LINES
        self.waiting.append((place, line))


class RankLog:
    """A rank's log, of which no more is kept than a few lines of each name.

    is_first: of its node, whose phases it tells; of all others FINISHED alone counts.
    """

    def __init__(
        self,
        rank: int,
        path: Path,
        *,
        own_script: bool = False,
        every_step: bool = False,
        is_first: bool = False,
    ) -> None:
        self.rank, self.path, self._own_script = rank, path, own_script
        self._is_first = is_first or rank == 0
        names = (None, *map(str.encode, sorted(NAMES)))
        self._of_name: dict[bytes | None, _OfName] = {name: _OfName(MOST_WORK) for name in names}
        self._needed = SELDOM
        if every_step:
            self._needed = SELDOM | {STEP_END}
            self._of_name[STEP_END.encode()].work_left = MOST_STEP_WORK
        if rank:
            for step in (EventName.STEP_BEGIN.value, STEP_END):
                self._of_name[step.encode()].work_left = PHASES_STEP_WORK
        self._no_events = self._others = self._skipped = 0
        self.too_long = 0  # events of more than LONGEST_LINE

    def events(self) -> Iterator[tuple[int, Event]]:
        """The events of FlagPerf's own names and where they stand; of ranks that are no node's first FINISHED alone.

        Those of a name come in the order written, but for the last of very many, which come at the end. None where
        there is no log.

        Raises:
            FlagPerfError: it cannot be read, or not to its end.
        """
        error = None
        try:
            for place, name, line in self._lines() if os.path.lexists(self.path) else ():
                of_name = self._of_name.get(name)
                if of_name is None or not (self._is_first or FINISHED.encode() in line):
                    continue
                if of_name.work_left <= 0:
                    of_name.wait(place, line)
                    continue
                of_name.work_left -= LINE_WORK + len(line) // 32 + sum(map(line.count, (b",", b"[", b"{")))
                yield from self._event(place, line)
        except FlagPerfError as unread:
            error = unread
        for of_name in self._of_name.values():
            for place, line in of_name.waiting:
                yield from self._event(place, line)
        if error:
            raise error

    def left_out(self) -> list[str]:
        """What was passed over, counted; to be asked once the events have been read."""
        counts = {
            f"line(s) with {PREFIX} that hold no event": self._no_events,
            f"event(s) that another rank than {self.rank} wrote": self._others,
        }
        return [*self._counted(counts), *self.too_many()]

    def too_many(self) -> list[str]:
        """What was not looked at though a reader may miss it, as there is more than any training writes."""
        passed_over = {name: self._of_name[name.encode()].passed_over for name in sorted(self._needed)}
        counts = {f"{name} between the first and the last": many for name, many in passed_over.items()}
        counts[f"line(s) with {PREFIX} that do not begin with an event's name"] = self._of_name[
            None
        ].passed_over
        counts[f"byte(s) behind {MOST_LINES} lines with {PREFIX}, before the end,"] = self._skipped
        return self._counted(counts)

    def _counted(self, counts: Mapping[str, int]) -> list[str]:
        return [f"{self.path}: {count} {what} are left out" for what, count in counts.items() if count]

    def _lines(self) -> Iterator[_Line]:
        """The lines with the prefix; of very many the first, and those at the end."""
        lines = chain.from_iterable(map(_one_by_one, self._marked()))
        return chain(islice(lines, MOST_LINES), self._at_the_end(lines))

    def _marked(self, last: int = LARGEST_LOG) -> Iterator[_Line]:
        return marked_lines_of(self.path, PREFIX, _NAME, last, home_of(self.path))

    def _at_the_end(self, rest: Iterator[_Line]) -> Iterator[_Line]:
        for begin, _, _ in islice(rest, 1):
            self._skipped = max(0, self.path.stat().st_size - END_BYTES - begin)
            ends = self._marked(END_BYTES)
            yield from (each for line in ends if line[0] >= begin for each in _one_by_one(line))

    def _event(self, place: int, line: bytes) -> Iterator[tuple[int, Event]]:
        """The event in a line, if it holds one of FlagPerf's own names, and this rank's."""
        event = parse_line(line.decode("utf-8", "replace"))
        if event is None:
            self._note(line)
        elif self.rank == 0 and event.rank != 0 and not self._own_script:
            self._others += 1
        elif event.name in NAMES:
            yield place, event

    def _note(self, line: bytes) -> None:
        """Count a line that holds no event; the last one may have been cut off."""
        if line.endswith((b"\r", b"\n")):
            self._no_events += 1
        else:
            self.too_long += len(line) >= LONGEST_LINE


def _one_by_one(line: _Line) -> Iterator[_Line]:
    """A line's events, each as a line: two threads may have written at the same moment.

    No event stands within another: in a text of JSON its quotation marks would have backslashes before them.
    """
    place, name, text = line
    begins = [0]
    if text.find(_SIGN, len(_SIGN)) >= 0:
        begins += [match.start() for match in _EVENT.finditer(text, len(_SIGN))]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        own = _EVENT.match(text, begin) if begin else None
        yield place + begin, own[1] if own else name, text[begin:end]


class _Kept:
    """What is kept of a rank's log, which is read to its end, or to where it cannot be read."""

    def __init__(self, log: RankLog, meets: Callable[[Event], bool]) -> None:
        self.log = log
        self._meets = meets
        self.met: Event | None = None
        self.finished = 0
        self.phases = PhaseEvents()
        self.errors: list[str] = []
        self._first: dict[str, tuple[int, Event]] = {}
        self._last: dict[str, tuple[int, Event]] = {}
        try:
            for placed in log.events():
                self._keep(placed)
        except FlagPerfError as error:
            self.errors.append(str(error))
        if log.too_long:
            message = f"{log.too_long} event(s) of more than {LONGEST_LINE} characters are left out"
            self.errors.append(f"{log.path}: {message}")

    def events(self) -> list[Event]:
        """Of rank 0 the first and the last of each name, in the order written."""
        kept = dict((*self._first.values(), *self._last.values()))
        return [kept[place] for place in sorted(kept)] if self.log.rank == 0 else []

    def _keep(self, placed: tuple[int, Event]) -> None:
        name = placed[1].name
        if self.log.rank == 0 and self._meets(placed[1]) and self.met is None:  # it is asked of each
            self.met = placed[1]
        self.finished += name == FINISHED
        self.phases.take(placed[1])
        self._first[name] = min(self._first.get(name, placed), placed, key=itemgetter(0))
        self._last[name] = max(placed, self._last.get(name, placed), key=itemgetter(0))
