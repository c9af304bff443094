"""The files of a folder of code and their SHA-256: two folders with the same digest hold the same code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

# Hidden files are the editor's and the tools'.
_MADE_BY_PYTHON = ("__pycache__", ".pyc")


def code_files(folder: Path) -> dict[str, str]:
    """Path below `folder`, with `/` between its parts -> SHA-256 in hex; nothing where there is no folder."""
    return {path.relative_to(folder).as_posix(): digest_of_file(path) for path in files_below(folder)}


def digest_of_file(path: Path) -> str:
    """SHA-256 of a file's content, in hex."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def digest_of(files: Mapping[str, str]) -> str:
    """SHA-256 of what `sha256sum` prints of the files, a line a file, in the order of their names (LC_ALL=C).

    Empty where there are no files.
    """
    lines = (f"{files[path]}  {path}\n" for path in sorted(files, key=str.encode))
    return hashlib.sha256("".join(lines).encode()).hexdigest() if files else ""


def files_below(folder: Path) -> Iterator[Path]:
    """The files of a folder, and of those in it, however deep; no link to a folder is followed.

    None where there is no folder.
    """
    waiting = [folder] if folder.is_dir() else []
    while waiting:
        for path in waiting.pop().iterdir():
            if path.name.startswith(".") or path.name.endswith(_MADE_BY_PYTHON):
                continue
            if path.is_file():
                yield path
            elif path.is_dir() and not path.is_symlink():
                waiting.append(path)
