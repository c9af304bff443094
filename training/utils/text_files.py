"""Text that strangers wrote: read without waiting for a pipe or filling the memory, shown without harm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from utils.errors import FlagPerfError

# Letters and signs that look like a blank, or like nothing; a row of them could make a line of words look like two.
_BLANK_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
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
    """`text`, of one line or several, without what would steer a terminal, hide, or cannot be encoded.

    That are controls, format characters (directions, zero width), halves of pairs, and blanks but for " ".
    """
    hidden = [char for char in set(text) - {"\n", "\t"} if not char.isprintable() or char in _BLANK_LETTERS]
    return text.translate(dict.fromkeys(map(ord, hidden), "\N{REPLACEMENT CHARACTER}"))


def one_line(text: str) -> str:
    """`text` as a part of a line, a cell or a name: `printable`, with blanks for its tabs and the ends of its lines."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def continued(text: str, indent: str = "    ") -> str:
    """`text`, `printable`, with its further lines indented: none of them passes for one that begins at the margin."""
    return printable(text).replace("\n", f"\n{indent}")
