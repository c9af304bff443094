"""The files of a folder of code and their SHA-256: two folders with the same digest hold the same code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from utils.errors import FlagPerfError
from utils.manifest import sha256_of
from utils.text_files import shortened

# Hidden files are the editor's and the tools'.
_MADE_BY_PYTHON = ("__pycache__", ".pyc")
_LONGEST_PATH = 200  # characters of one in an error


def code_files(folder: Path) -> dict[str, str]:
    """Path below `folder`, with `/` between its parts -> SHA-256 in hex; nothing where there is no folder.

    Raises:
        FlagPerfError: something in it cannot be read, such as what lies deeper than a path can be long.
    """
    return {path.relative_to(folder).as_posix(): digest_of_file(path) for path in files_below(folder)}


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file's content, in hex; FlagPerfError where it cannot be read."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise _unreadable(path, error) from error


def digest_of(files: Mapping[str, str]) -> str:
    """SHA-256 of what `sha256sum` prints of the files, a line a file, in the order of their names (LC_ALL=C).

    Empty where there are no files.
    """
    lines = (f"{files[path]}  {path}\n" for path in sorted(files, key=str.encode))
    return hashlib.sha256("".join(lines).encode()).hexdigest() if files else ""


def files_below(folder: Path) -> Iterator[Path]:
    """The files of a folder, and of those in it, however deep; no link to a folder is followed.

    None where there is no folder.

    Raises:
        FlagPerfError: one of the folders cannot be read.
    """
    waiting = [folder] if folder.is_dir() else []
    while waiting:
        at = waiting.pop()
        try:
            files, folders = _entries(at)
        except OSError as error:
            raise _unreadable(at, error) from error
        yield from files
        waiting += folders


def _entries(folder: Path) -> tuple[list[Path], list[Path]]:
    """The files and the folders in a folder."""
    paths = [
        path
        for path in folder.iterdir()
        if not (path.name.startswith(".") or path.name.endswith(_MADE_BY_PYTHON))
    ]
    files = [path for path in paths if path.is_file()]
    return files, [path for path in paths if path.is_dir() and not path.is_symlink()]


def _unreadable(path: Path, error: OSError) -> FlagPerfError:
    remedy = "move away what is no code, or see who may read it"
    return FlagPerfError(
        f"cannot be read: {error.strerror}", where=shortened(str(path), _LONGEST_PATH), remedy=remedy
    )
