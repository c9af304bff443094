"""Text that strangers wrote: read without waiting for a pipe or filling the memory, shown without harm."""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

from utils.errors import FlagPerfError

# Letters and signs that look like a blank, or like nothing; a row of them could make a line of words look like two.
_BLANK_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
LONGEST_FILLED = 20_000  # characters that are broken into lines
LONGEST_LINE = 2**20  # characters: the longest event has a few thousand
LARGEST_LOG = 2**32  # bytes: collecting takes no more from a node
_NO_FILE = {
    errno.EISDIR: "is no file",
    errno.ELOOP: "is no file, but a link, which is not followed",
    errno.ENOTDIR: "does not lie in a folder, or in one that is a link, which is not followed",
}
# What is read of a file's end.
END_BYTES = 2**22
_BLOCK = 2**22  # bytes that are read at once


def lines_of(path: Path, below: Path | None = None) -> Iterator[str]:
    """The lines of a file of any size, with their ends; one longer than LONGEST_LINE comes in parts.

    Args:
        below: as of `opened`.

    Raises:
        FlagPerfError: it is no plain file, a link, too large, or cannot be read.
    """
    with (
        opened(path, below=below) as binary,
        io.TextIOWrapper(binary, encoding="utf-8", errors="replace") as file,
    ):
        while line := file.readline(LONGEST_LINE):
            yield line


def marked_lines_of(
    path: Path, mark: str, follows: bytes = b"()", last: int = LARGEST_LOG, below: Path | None = None
) -> Iterator[tuple[int, bytes | None, bytes]]:
    """The lines of a file of any size that hold `mark`, each from its first one on, with their ends.

    Of a line that goes on for more than LONGEST_LINE bytes that many come; what follows is looked at anew. All else
    costs no more than to read it.

    Args:
        follows: a pattern of what may stand right behind the mark, with a group. last: so many bytes at the end of
            the file are looked at. below: as of `opened`.

    Yields:
        Where in the file the mark begins, in bytes; what the group holds, None where that does not follow; the line.

    Raises:
        FlagPerfError: it is no plain file, a link, too large, or cannot be read.
    """
    sign = mark.encode()
    most = LONGEST_LINE - len(sign)
    marked = re.compile(rb"%s(?:%s)?[^\r\n]{0,%d}[\r\n]?" % (re.escape(sign), follows, most))
    with opened(path, below=below) as file:
        kept, place = b"", file.seek(max(0, file.seek(0, os.SEEK_END) - last))
        while True:
            block = file.read(_BLOCK)
            text = kept + block
            rest = max(0, len(text) - len(sign) + 1)  # a mark may be cut in two
            for match in marked.finditer(text):
                if block and match.end() == len(text):  # it may go on in the next block
                    rest = match.start()
                    break
                yield place + match.start(), match[1], match[0]
                rest = max(rest, match.end())
            if not block:
                return
            kept, place = text[rest:], place + rest


def last_lines_of(path: Path, below: Path | None = None) -> list[str]:
    """The whole lines, without their ends, in the last END_BYTES of a file of any size.

    Args:
        below: as of `opened`.

    Raises:
        FlagPerfError: it is no plain file, a link, too large, or cannot be read.
    """
    text = end_of(path, END_BYTES + 1, below)
    lines = text[-END_BYTES:].decode("utf-8", "replace").splitlines()
    if len(text) <= END_BYTES:
        return lines
    return lines[1:] or [*map(from_next_word, lines)]  # the first one's beginning is not there


def end_of(path: Path, most: int, below: Path | None = None) -> bytes:
    """The last `most` bytes of a file of any size.

    Args:
        below: as of `opened`.

    Raises:
        FlagPerfError: it is no plain file, a link, too large, or cannot be read.
    """
    with opened(path, below=below) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - most))
        return file.read(most)


@contextmanager
def opened(path: Path, largest: int = LARGEST_LOG, below: Path | None = None) -> Iterator[BinaryIO]:
    """A file that a stranger may have put there, to be read: what leads elsewhere or has no end is not opened.

    Args:
        below: a folder that holds it: of the folders between the two none may be a link either.

    Raises:
        FlagPerfError: it is no plain file of at most `largest` bytes, or cannot be read.
    """
    opener: Callable[[str, int], int] = _open_itself if below is None else partial(_open_below, below)
    try:
        with open(path, "rb", opener=opener) as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise FlagPerfError("is no file", where=str(path))
            if state.st_size > largest:
                raise FlagPerfError(f"is larger than {largest} bytes", where=str(path))
            yield file
    except OSError as error:
        message = _NO_FILE.get(error.errno or 0, f"cannot be read: {error.strerror}")
        raise FlagPerfError(message, where=str(path)) from error


def _open_itself(path: str, flags: int) -> int:
    """Open what has this name itself, and do not wait where it is a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _open_below(folder: Path, path: str, flags: int) -> int:
    """`_open_itself`, step by step from a folder: a link that is put on the way meanwhile leads nowhere either."""
    with entered(Path(path).parent, folder) as place:
        return os.open(Path(path).name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)


@contextmanager
def entered(folder: Path, below: Path) -> Iterator[int]:
    """A descriptor of a folder, from which its files are reached whatever becomes of its path.

    Args:
        below: a folder that holds it, or itself: on the way from there to it no link is followed.

    Raises:
        OSError: it is not there, or there is a link on the way.
    """
    with ExitStack() as steps:
        place = os.open(below, os.O_RDONLY | os.O_DIRECTORY)
        steps.callback(os.close, place)
        for step in folder.relative_to(below).parts:
            place = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            steps.callback(os.close, place)
        yield place


def matching(folder: Path, pattern: str) -> list[Path]:
    """What in a folder matches, sorted; nothing where the folder goes away, or becomes something else, meanwhile."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def shortened(line: str, longest: int) -> str:
    """`line`, which says so where it is cut."""
    return line if len(line) <= longest else f"{line[:longest]}... ({len(line)} characters in all)"


def shortened_to_words(line: str, longest: int) -> str:
    """`shortened`, without the word that the cut goes through: of a secret in it nobody would know the rest again."""
    if len(line) <= longest:
        return line
    return f"{line[:longest].rpartition(' ')[0]}... ({len(line)} characters in all)"


def from_next_word(text: str) -> str:
    """`text`, whose beginning was cut off, without the rest of a word there, for the same reason."""
    return re.sub(r"\A\S+", "", text)


def printable(text: str) -> str:
    """`text`, of one line or several, without what would steer a terminal, hide, or cannot be encoded.

    That are controls, format characters (directions, zero width), halves of pairs, and blanks but for " ".
    """
    if text.isascii() and text.isprintable():
        return text
    hidden = [char for char in set(text) - {"\n", "\t"} if not char.isprintable() or char in _BLANK_LETTERS]
    return text.translate(dict.fromkeys(map(ord, hidden), "\N{REPLACEMENT CHARACTER}"))


def one_line(text: str) -> str:
    """`text` as a part of a line, a cell or a name: `printable`, with a blank for a tab and for an end of a line.

    What indents the next line is a part of that end.
    """
    first, *others = printable(text).replace("\t", " ").split("\n")
    return " ".join([first, *filter(None, map(str.lstrip, others))])


def filled(text: str, width: int, indent: str) -> str:
    """`text` as lines of at most `width` characters where its words allow it, all but the first one indented.

    Of a text of any length: the time that textwrap takes grows with its square.
    """
    words = shortened(text, LONGEST_FILLED)
    return textwrap.fill(
        words, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def continued(text: str, indent: str = "    ") -> str:
    """`text`, `printable`, with its further lines indented: none of them passes for one that begins at the margin."""
    return printable(text).replace("\n", f"\n{indent}")
