"""The folders of a result directory that hold runs, and for each what tells whether it has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from run_benchmarks.names import JOURNAL, RUN_FILES, RUN_NAME, is_run_folder
from run_benchmarks.results.round_folders import round_folders
from utils.errors import FlagPerfError
from utils.text_files import one_line


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
    try:
        # os.path: a link that leads in a circle, or into what may not be looked into, is no error to it
        folders = [path for path in log_path.iterdir() if os.path.isdir(path) and _may_hold_a_run(path)]  # noqa: PTH112
    except OSError as error:
        remedy = "say with --log-path where the result folders are"
        raise FlagPerfError(
            f"cannot be listed: {error.strerror}", where=str(log_path), remedy=remedy
        ) from error
    if not folders and is_run_folder(log_path):
        remedy = f"name the folder that holds it: --log-path {log_path.resolve().parent}"
        raise FlagPerfError("is the folder of one run", where=str(log_path), remedy=remedy)
    return list(map(_place, folders))


def _may_hold_a_run(folder: Path) -> bool:
    try:
        return bool(RUN_NAME.fullmatch(folder.name)) or is_run_folder(folder)
    except OSError:  # it may not be looked into: it is listed with that
        return True


def _place(folder: Path) -> Place:
    marks = list(_marks(folder))
    goes_on = not any(each.startswith("summary.json ") for each in marks) and _is_held(folder / JOURNAL)
    text = "\n".join([str(goes_on), *marks])
    return Place(folder, hashlib.sha256(text.encode(errors="replace")).hexdigest(), goes_on)


def _is_held(journal: Path) -> bool:
    from run_benchmarks.journal import is_held  # it loads much, for few runs

    return is_held(journal) is True


def _marks(folder: Path) -> Iterator[str]:
    """Size and time of the run's own files, and of the folders of its cases and rounds.

    A round's `result.json` is put in place by renaming, which changes the time of the round's folder.
    """
    try:
        in_cases = round_folders(folder)
    except OSError:  # it goes away just now, or may not be looked into: its reader says so
        in_cases = {}
    rounds = (f"{case}/{name}" for case, names in in_cases.items() for name in names)
    for name in (*RUN_FILES, *in_cases, *rounds):
        with suppress(OSError):  # it is not there, or goes away just now
            state = (folder / name).stat()
            yield f"{name} {state.st_size} {state.st_mtime_ns}"
