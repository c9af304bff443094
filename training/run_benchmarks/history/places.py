"""The folders of a result directory that hold runs, and for each what tells whether it has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from run_benchmarks.names import JOURNAL, ROUND_FOLDER, RUN_FILES, RUN_NAME, is_run_folder
from utils.errors import FlagPerfError
from utils.text_files import one_line

# Of a folder that anybody may have filled so many entries are looked at.
MOST_ENTRIES = 10_000


@dataclass(frozen=True)
class Place:
    """Where a run lies. `mark` differs whenever what is read of it may differ; `goes_on`: its controller lives."""

    path: Path
    mark: str
    goes_on: bool

    @property
    def key(self) -> str:
        """What stands for the run in an address: its folder's name, or a digest of one that no address should hold."""
        name = self.path.name
        return name if RUN_NAME.fullmatch(name) else f"x{hashlib.sha256(os.fsencode(name)).hexdigest()[:20]}"

    @property
    def name(self) -> str:
        """The folder's name, to be shown."""
        return one_line(os.fsencode(self.path.name).decode("utf-8", "replace"))


def places_in(log_path: Path) -> list[Place]:
    """Every folder directly in `log_path` that holds a run or has the name of one.

    Raises:
        FlagPerfError: it cannot be listed, or is the folder of a run itself.
    """
    remedy = "say with --log-path where the result folders are"
    try:
        with os.scandir(log_path) as entries:
            folders = [Path(entry.path) for entry in entries if _is_folder(entry)]
    except OSError as error:
        raise FlagPerfError(
            f"cannot be listed: {error.strerror}", where=str(log_path), remedy=remedy
        ) from error
    places = [_place(folder) for folder in folders if _may_hold_a_run(folder)]
    if not places and is_run_folder(log_path):
        remedy = f"name the folder that holds it: --log-path {log_path.resolve().parent}"
        raise FlagPerfError("is the folder of one run", where=str(log_path), remedy=remedy)
    return places


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads in a circle
        return False


def _may_hold_a_run(folder: Path) -> bool:
    try:
        return bool(RUN_NAME.fullmatch(folder.name)) or is_run_folder(folder)
    except OSError:  # it may not be looked into: it is listed with that
        return True


def _place(folder: Path) -> Place:
    goes_on = False
    try:
        goes_on = not (folder / "summary.json").exists() and _is_held(folder / JOURNAL)
        parts = "\n".join(_marks(folder))
    except OSError as error:  # it may not be looked into, or goes away just now
        parts = str(error)
    mark = hashlib.sha256(f"{goes_on}\n{parts}".encode(errors="replace")).hexdigest()
    return Place(folder, mark, goes_on)


def _is_held(journal: Path) -> bool:
    from run_benchmarks.journal import is_held  # it loads much, for few runs

    return is_held(journal) is True


def _marks(folder: Path) -> Iterator[str]:
    """Size and time of the run's own files, and the times of the folders of its cases and rounds.

    A round's `result.json` is put in place by renaming, which changes the time of the round's folder.
    """
    for name in RUN_FILES:
        with suppress(OSError):
            state = (folder / name).stat()
            yield f"{name} {state.st_size} {state.st_mtime_ns}"
    for case in _folders(folder):
        yield f"{case.name} {case.stat().st_mtime_ns}"
        for each in _folders(case):
            if ROUND_FOLDER.fullmatch(each.name):
                yield f"{case.name}/{each.name} {each.stat().st_mtime_ns}"


def _folders(folder: Path | os.DirEntry[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                (entry for entry in islice(entries, MOST_ENTRIES) if _is_folder(entry)), key=lambda e: e.name
            )
    except OSError:
        return []
