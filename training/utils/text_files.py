"""Text that strangers wrote: read without waiting for a pipe or filling the memory, shown without harm."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from utils.errors import FlagPerfError

LONGEST_LINE = 2**20  # characters: the longest event has a few thousand
# What is read of a file's end.
END_BYTES = 2**22


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a file of any size, with their ends; one longer than LONGEST_LINE comes in parts.

    Raises:
        FlagPerfError: it is no plain file, or cannot be read.
    """
    with _opened(path) as binary, io.TextIOWrapper(binary, encoding="utf-8", errors="replace") as file:
        while line := file.readline(LONGEST_LINE):
            yield line


def last_lines_of(path: Path) -> list[str]:
    """The whole lines, without their ends, in the last END_BYTES of a file of any size.

    Raises:
        FlagPerfError: it is no plain file, or cannot be read.
    """
    with _opened(path) as file:
        begin = max(0, file.seek(0, os.SEEK_END) - END_BYTES)
        file.seek(begin)
        lines = file.read(END_BYTES).decode("utf-8", "replace").splitlines()
    return lines[1:] if begin and len(lines) > 1 else lines  # of the first one the beginning is not there


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for, a device has no end
            raise FlagPerfError("is no file", where=str(path))
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise FlagPerfError(f"cannot be read: {error.strerror}", where=str(path)) from error


def shortened(line: str, longest: int) -> str:
    """`line`, which says so where it is cut."""
    return line if len(line) <= longest else f"{line[:longest]}... ({len(line)} characters in all)"


def printable(text: str) -> str:
    """`text` without what would steer a terminal or cannot be encoded."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text
    )
