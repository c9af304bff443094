"""Text that strangers wrote: read without waiting for a pipe or filling the memory, shown without harm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from utils.errors import FlagPerfError

LONGEST_LINE = 2**20  # characters: the longest event has a few thousand


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a file of any size, with their ends; one longer than LONGEST_LINE comes in parts.

    Raises:
        FlagPerfError: it is no plain file, or cannot be read.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for, a device has no end
            raise FlagPerfError("is no file", where=str(path))
        with path.open(encoding="utf-8", errors="replace") as file:
            while line := file.readline(LONGEST_LINE):
                yield line
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
