"""Where an export goes: a new file or folder, there as a whole or not at all, and never over anything."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from utils.errors import FlagPerfError


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to write into, which is `path` when that has gone well.

    Raises:
        FlagPerfError: there is something at `path`, or it cannot be written.
    """
    with _beside(path) as folder:
        made = folder / "made"
        made.mkdir()
        yield made
        path.mkdir()  # of two that want the name one fails here
        made.replace(path)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to write, which is `path` when that has gone well; raises as `new_folder`."""
    with _beside(path) as folder:
        made = folder / "made"
        yield made
        path.touch(exist_ok=False)  # of two that want the name one fails here; a link is nothing for FAT
        made.replace(path)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A folder of its own next to `path`, which is gone afterwards."""
    if path.exists() or path.is_symlink():
        remedy = "name another one, or move it away: nothing is written over what is there"
        raise FlagPerfError("is there already", where=str(path), remedy=remedy)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", dir=path.parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise FlagPerfError(f"cannot be written: {error.strerror}", where=str(path)) from error
