"""Which result folder a user means by a run's folder, its name or `latest`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.journal import is_held
from run_benchmarks.names import JOURNAL, RUN_NAME, RUN_UID, SUMMARY, is_run_folder, places_of
from run_benchmarks.results.folder import open_folder
from utils.errors import FlagPerfError

LATEST = "latest"
MOST_NAMES = 5


def find_run(given: str | None, log_path: Path) -> Path:
    """The folder of the run that is `given`: a folder, a name or uid below `log_path`, or the newest one.

    Raises:
        FlagPerfError: there is no such run; the names that come nearest are in the remedy.
    """
    folders = _runs_in(log_path)
    names = [folder.name for folder in folders]
    if given in (None, LATEST):
        if folders:
            return folders[-1]
        if is_run_folder(log_path):  # the run's own folder was named, and not the one that holds it
            return log_path
        raise FlagPerfError("there is no run here", where=str(log_path), remedy=_elsewhere())
    assert given is not None  # noqa: S101 - for mypy
    for path in places_of(given, log_path):
        is_named = not RUN_UID.fullmatch(given) or path.name == given
        if path.is_dir() and (is_named or has_uid(path, given)):
            return path
    near = get_close_matches(given, names, n=MOST_NAMES, cutoff=0.6) or names[-MOST_NAMES:]
    remedy = (
        f"there are, among others: {', '.join(near)}" if near else f"there is none at all: {_elsewhere()}"
    )
    raise FlagPerfError(f"there is no run {given!r}", where=str(log_path), remedy=remedy)


def find_open_run(given: str | None, log_path: Path) -> Path:
    """As `find_run`, but where none is named it is the newest that goes on, else the newest that was not refused.

    A run that was refused, since another one has the hosts, is newer than that one, and nobody means it.

    Raises:
        FlagPerfError: there is no such run.
    """
    runs = [] if given else [folder for folder in reversed(_runs_in(log_path)) if is_run_folder(folder)]
    live = (folder for folder in runs if not _has_ended(folder) and is_held(folder / JOURNAL))
    not_refused = (folder for folder in runs if not _is_refused(folder))
    return next(live, None) or next(not_refused, None) or find_run(given, log_path)


def _has_ended(folder: Path) -> bool:
    return (folder / SUMMARY).exists()


def _is_refused(folder: Path) -> bool:
    """Whether it ended before its first round, as its hosts were not fit for it."""
    return _has_ended(folder) and open_folder(folder).summary.get("exit_code") == ExitCode.UNHEALTHY


def has_uid(path: Path, uid: str) -> bool:
    """Whether the run in a folder is that of this uid."""
    return uid in _values(path, "uid")


def uid_of(path: Path) -> str:
    """The uid of the run in a folder; empty where it does not say, or is none."""
    return next(_values(path, "uid"), "") if is_run_folder(path) else ""


def _values(path: Path, key: str) -> Iterator[str]:
    """What the summary, and the journal, whose first line says it, have under a key."""
    folder = open_folder(path)
    return (entry[key] for entry in (folder.summary, *folder.journal) if isinstance(entry.get(key), str))


def _runs_in(log_path: Path) -> list[Path]:
    """The runs below a log path that this user may look into, the newest last; none where it cannot be listed."""
    try:
        folders = [path for path in log_path.iterdir() if path.is_dir()]
    except OSError:
        return []
    # a volume's lost+found, say, or the folder that another user has closed
    opened = [path for path in folders if os.access(path, os.R_OK | os.X_OK, effective_ids=True)]
    runs = [path for path in opened if RUN_NAME.fullmatch(path.name) or is_run_folder(path)]
    return sorted(runs, key=lambda path: (_name(path), path.name))


def _name(path: Path) -> str:
    """The run's own name, also where its folder was given another; it sorts by the time of its start."""
    return path.name if RUN_NAME.fullmatch(path.name) else next(_values(path, "run"), "")


def _elsewhere() -> str:
    return "name a run's folder, or say with --log-path where the result folders are"
