"""The ranks' logs of a round, as they were collected: rank 0's events, who reported FINISHED, what cannot be read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from utils.errors import FlagPerfError
from utils.events import Event, EventName, parse_line, read_events
from utils.node import rank_log_name
from utils.text_files import lines_of

RANK_LOG = re.compile(re.escape(rank_log_name("N")).replace("N", r"(\d+)"))


@dataclass(frozen=True)
class RankLogs:
    """What the logs of all ranks hold.

    events: global rank 0's, in the order written.
    finished: global rank -> how often it reported FINISHED, those that did only.
    errors: a line for each log or folder that is there and cannot be read.
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
                times = _read(rank, path, events, errors)
                if times:
                    finished[rank] = finished.get(rank, 0) + times
        except OSError as error:
            errors.append(f"{folder}: cannot be listed: {error.strerror}")
    return RankLogs(events, dict(sorted(finished.items())), errors)


def _logs_in(folder: Path) -> list[tuple[int, Path]]:
    try:
        names = ((RANK_LOG.fullmatch(path.name), path) for path in folder.iterdir())
        return sorted((int(match[1]), path) for match, path in names if match)
    except FileNotFoundError:
        return []


def _read(rank: int, path: Path, events: list[Event], errors: list[str]) -> int:
    """How often a log reports FINISHED; rank 0's events are added to `events`."""
    try:
        if rank == 0:
            own = read_events(path)
            events += own
            return sum(event.name == EventName.FINISHED for event in own)
        return _count_finished(path)
    except FlagPerfError as error:
        errors.append(str(error))
    return 0


def _count_finished(path: Path) -> int:
    # only lines that may be it are parsed: the events of a thousand ranks would take minutes
    candidates = (parse_line(line) for line in lines_of(path) if EventName.FINISHED.value in line)
    return sum(event is not None and event.name == EventName.FINISHED for event in candidates)
