"""Where an export goes: a new file or folder, there as a whole or not at all, and never over anything."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from run_benchmarks.commands import RUN_PY
from run_benchmarks.own_folder import check_place
from utils.errors import FlagPerfError

OF_FILES = (".tar.gz", ".tgz", ".zip", ".csv", ".html", ".json", ".md", ".txt", ".log")  # no folder's name


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write into, which is `path` when that has gone well.

    Raises:
        FlagPerfError: there is something at `path`, its name is a file's, or it cannot be written.
    """
    with _beside(path) as folder:
        if path.name.lower().endswith(OF_FILES):
            raise FlagPerfError(
                "is to be a folder, of several files", where=str(path), remedy="name it as one"
            )
        made = folder / "made"
        made.mkdir()
        yield made
        path.mkdir()  # of two that want the name one fails here
        made.replace(path)


@contextmanager
def new_file(path: Path, endings: Sequence[str] = ()) -> Iterator[Path]:
    """A file to write, which is `path` when that has gone well.

    Args:
        endings: what the name of such a file ends in, in small letters, the usual one first (an empty one: it may
            have none); none for any.

    Raises:
        FlagPerfError: there is something at `path`, its name is not such a file's, or it cannot be written.
    """
    with _beside(path) as folder:
        if endings and not _ends_in(path, endings):
            message = f"its name is to end in {' or '.join(filter(None, endings))}"
            right = path.with_suffix(endings[0])
            raise FlagPerfError(message, where=str(path), remedy=f"name it {right}")
        made = folder / "made"
        yield made
        path.touch(exist_ok=False)  # of two that want the name one fails here; a link is nothing for FAT
        made.replace(path)


def _ends_in(path: Path, endings: Sequence[str]) -> bool:
    return any(path.name.lower().endswith(each) if each else not path.suffix for each in endings)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A folder of its own next to `path`, which is gone afterwards.

    The folder in which `path` is to lie is never made: a misspelt one would be, and what is written there be missed.
    """
    if path.exists() or path.is_symlink():
        remedy = "name another one, or move it away: nothing is written over what is there"
        raise FlagPerfError("is there already", where=str(path), remedy=remedy)
    if not path.parent.exists():
        message = f"there is no folder {path.parent}"
        raise FlagPerfError(message, where=str(path), remedy="make it, or name another place")
    check_place(path.parent, "name another place", RUN_PY.parents[1])
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", dir=path.parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise FlagPerfError(f"cannot be written: {error.strerror}", where=str(path)) from error
