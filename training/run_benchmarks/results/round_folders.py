"""The folders of cases and rounds in a run's folder, whoever made it: no link is followed, and no more than a bound."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from utils.errors import FlagPerfError
from utils.text_files import entered

MOST_FOLDERS = 20_000  # twice as many as ten thousand rounds of one case need
Tell = Callable[[FlagPerfError], None]


def round_folders(run: Path, tell: Tell = lambda error: None) -> dict[str, list[str]]:
    """Each folder in a run's, and of what lies in it the folders whose names begin as a round's; all by name.

    Args:
        tell: gets what is a link, cannot be listed, or is too much.

    Raises:
        OSError: the run's folder cannot be listed.
    """
    folders: dict[str, list[str]] = {}
    walk = _folders(run, tell)
    for case, name in islice(walk, MOST_FOLDERS):
        folders.setdefault(case, []).extend([name] if name else [])
    if next(walk, None):
        message = f"holds more than {MOST_FOLDERS} folders: the rest is not looked at"
        tell(FlagPerfError(message, where=str(run)))
    return folders


def _folders(run: Path, tell: Tell) -> Iterator[tuple[str, str]]:
    """A case's folder, with an empty name, then those in it."""
    for case in _listed(run, run, ("", "round1"), tell):
        yield case, ""
        try:
            yield from ((case, name) for name in _listed(run / case, run, ("round", ""), tell))
        except OSError as error:
            tell(FlagPerfError(f"cannot be listed: {error.strerror}", where=str(run / case)))


def _listed(folder: Path, run: Path, form: tuple[str, str], tell: Tell) -> list[str]:
    """The folders there, as many as are too many at most.

    Args:
        form: how their names begin, and which folder makes a link worth saying.
    """
    beginning, inside = form
    folders, links = [], []
    with entered(folder, run) as place, os.scandir(place) as entries:
        for entry in (each for each in entries if each.name.startswith(beginning)):
            if entry.is_symlink():
                links.append(folder / entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            if len(folders) > MOST_FOLDERS:
                break
    # os.path: one that leads in a circle, or into what may not be looked into, is no error to it
    for link in sorted(links):
        if os.path.isdir(link / inside):  # noqa: PTH112
            tell(FlagPerfError("is a link, which is not followed", where=str(link)))
    return sorted(folders)
