"""What of a run is exported: its rounds with their results, their place in the plan, and rank 0's events."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from pathlib import Path

from run_benchmarks.names import node_folder_name
from run_benchmarks.plan.secrets import SecretsHere
from run_benchmarks.results.folder import RoundKey, RunFolder, open_folder
from run_benchmarks.results.load import run_in
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.rank_logs import SELDOM, RankLog
from run_benchmarks.results.round_result import RoundResult
from utils.errors import FlagPerfError
from utils.events import Event
from utils.node import rank_log_name

LONGEST_S = 1e12  # since the epoch: far behind the last year that a calendar has


@dataclass(frozen=True)
class Round:
    """A round of the run in `folder`; `case` is None where the plan does not have it."""

    folder: RunFolder
    result: RoundResult
    case: PlannedCase | None

    @property
    def name(self) -> str:
        """For messages."""
        return str(RoundKey(self.result.case, self.result.round))

    def local_time(self, time_ms: int) -> datetime:
        """A moment in milliseconds since the epoch, by the clock on the wall where the controller ran, else in UTC.

        Raises:
            FlagPerfError: no clock can show it.
        """
        zone: tzinfo | None = timezone.utc
        with suppress(ValueError):  # the result does not say when it began
            zone = datetime.fromisoformat(self.result.started).tzinfo
        try:
            return datetime.fromtimestamp(time_ms / 1000, zone)
        except (ValueError, OverflowError, OSError) as error:
            raise FlagPerfError(f"{time_ms} ms is no time: {error}", where=self.name) from error

    def node_folders(self) -> list[Path]:
        """The nodes' folders by rank; one that was not collected is not there."""
        path = self.folder.folder_of(self.result)
        names = [node_folder_name(host, rank) for rank, host in enumerate(self.result.hosts)]
        return [path / name for name in names] if path else []

    def events(self) -> list[Event]:
        """Rank 0's events but for those of steps, in the order written; none where its log is not there.

        Raises:
            FlagPerfError: its log cannot be read, or has more events than any training.
        """
        folders = self.node_folders()
        if not folders:
            return []
        log = RankLog(0, folders[0] / rank_log_name(0))
        events = {place: event for place, event in log.events() if event.name in SELDOM}
        for problem in log.too_many():
            raise FlagPerfError(problem)
        return [events[place] for place in sorted(events)]


def rounds_in(path: Path, secrets: SecretsHere) -> list[Round]:
    """All rounds of the run in a folder, in the order of the plan.

    Raises:
        FlagPerfError: it is no result folder of a run, or holds no round.
    """
    folder = open_folder(path)
    results = run_in(folder, secrets).results
    if not results:
        raise FlagPerfError("holds no round that could be exported", where=str(path))
    return [Round(folder, result, folder.cases.get(result.case)) for result in results]


def in_ms(seconds: float) -> int:
    """Whole milliseconds.

    Raises:
        FlagPerfError: no clock counts so many.
    """
    if abs(seconds) > LONGEST_S:
        raise FlagPerfError(f"{seconds} s is no time that a round can take, or at which it can be")
    return round(seconds * 1000)


def file_name(case: str) -> str:
    """A case's name as that of a file or folder anywhere."""
    return re.sub(r"[^\w.+-]+", "_", case)
