"""Which result folder a user means by a run's folder, its name or `latest`."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from run_benchmarks.results.folder import open_folder
from utils.errors import FlagPerfError

LATEST = "latest"
# A run's name and, behind it in its uid, what makes that unique.
RUN_NAME = re.compile(r"(run\d{14})(?:-[0-9a-f]{6})?", re.ASCII)
MOST_NAMES = 5


def find_run(given: str | None, log_path: Path) -> Path:
    """The folder of the run that is `given`: a folder, a name or uid below `log_path`, or the newest one.

    Raises:
        FlagPerfError: there is no such run; the names that come nearest are in the remedy.
    """
    names = _names_in(log_path)
    if given in (None, LATEST):
        if names:
            return log_path / names[-1]
        raise FlagPerfError("there is no run here", where=str(log_path), remedy=_elsewhere())
    assert given is not None
    match = RUN_NAME.fullmatch(given)
    if match and match[1] in names and (match[0] == match[1] or _has_uid(log_path / match[1], given)):
        return log_path / match[1]
    for path in (Path(given), log_path / given):
        if path.is_dir():
            return path
    near = get_close_matches(given, names, n=MOST_NAMES, cutoff=0.6) or names[-MOST_NAMES:]
    remedy = (
        f"there are, among others: {', '.join(near)}" if near else f"there is none at all: {_elsewhere()}"
    )
    raise FlagPerfError(f"there is no run {given!r}", where=str(log_path), remedy=remedy)


def _has_uid(path: Path, uid: str) -> bool:
    """Whether a run is that of this uid; its journal's first line says so, or its summary."""
    folder = open_folder(path)
    return uid in (entry.get("uid") for entry in (folder.summary, *folder.journal))


def _names_in(log_path: Path) -> list[str]:
    """The names of the runs below a log path, the newest last; none where it cannot be listed."""
    try:
        return sorted(
            path.name for path in log_path.iterdir() if RUN_NAME.fullmatch(path.name) and path.is_dir()
        )
    except OSError:
        return []


def _elsewhere() -> str:
    return "name a run's folder, or say with --log-path where the result folders are"
