"""A round whose rank 0's log did not come home: judged by the log where somebody brought it since, else by the events
that the controller followed while the round ran, if FINISHED is among them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from run_benchmarks.names import FOLLOWED_EVENTS, decisive_log, node_folder_name
from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.rank_logs import FINISHED, RankLog
from run_benchmarks.results.round_result import Observation
from utils.errors import FlagPerfError
from utils.records import Failure, FailureClass, Stage, Verdict


def with_log(case: PlannedCase, seen: Observation, folder: Path) -> tuple[Observation, Path | None]:
    """What was seen of the round in `folder`, without the failure that its log is missing where there is one to judge
    by, and a note in its place; and the events that stand in for the log, or None."""
    if not seen.failure or not _lacks_log(seen.failure):
        return seen, None
    log = decisive_log(case.roles)
    first = [folder / node_folder_name(host, 0) / log for host in seen.hosts[:1]]
    if any(path.is_file() for path in first):
        return _well(seen, f"{log} was not collected, and was put there later"), None
    followed = folder / FOLLOWED_EVENTS
    if not _has_finished(followed, own_script=not case.uses_driver):
        return seen, None
    why = f"{log} could not be fetched ({seen.failure.message})"
    rest = f"the round is judged by its events as they were followed while it ran, {FOLLOWED_EVENTS}"
    return _well(seen, f"{why}: {rest}"), followed


def _lacks_log(failure: Failure) -> bool:
    """Whether all that went wrong is that the logs of a training that had ended well did not come."""
    is_lost = failure.stage is Stage.COLLECT and failure.verdict is Verdict.UNREACHABLE
    return is_lost or failure.failure_class is FailureClass.LOGS_NOT_COLLECTED


def _well(seen: Observation, note: str) -> Observation:
    return replace(seen, failure=None, notes=(*seen.notes, note))


def _has_finished(path: Path, *, own_script: bool) -> bool:
    try:
        return any(event.name == FINISHED for _, event in RankLog(0, path, own_script=own_script).events())
    except FlagPerfError:
        return False
