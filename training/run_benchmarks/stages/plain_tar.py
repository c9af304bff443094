"""A strict reader of tar's plainest form (POSIX ustar), which has no links, no sparse files and nothing compressed.

What a general reader of archives understands besides (names and sizes of any length in headers of their own) is what
a hostile writer would use: here every header is one block, and is refused before anything that it announces is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from utils.errors import FlagPerfError

BLOCK = 512
PIECE = 2**20


def plain_file(block: bytes) -> tuple[str, int]:
    """The name and the size of the plain file whose header `block` is.

    Raises:
        FlagPerfError: it is none.
    """
    prefix, name = _text(block[345:500]), _text(block[:100])
    name = f"{prefix}/{name}" if prefix else name
    size, kind = block[124:136].rstrip(b"\0 "), block[156:157]
    if len(block) < BLOCK or kind != b"0" or not size.isdigit():
        raise FlagPerfError(f"the stream is broken, or holds something else than a file: {name[:80]!r}")
    try:
        return name, int(size, 8)
    except ValueError as error:
        raise FlagPerfError(f"the stream is broken: {name[:80]!r} has no size") from error


def content(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """The file that follows its header, in pieces, with what fills its last block taken off the stream too."""
    yield from pieces(stream, size)
    exactly(stream, -size % BLOCK)


def pieces(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """So many bytes in pieces; FlagPerfError where the stream ends before."""
    for start in range(0, size, PIECE):
        yield exactly(stream, min(PIECE, size - start))


def exactly(stream: BinaryIO, size: int) -> bytes:
    """So many bytes; FlagPerfError where the stream ends before."""
    data = stream.read(size)
    if len(data) < size:
        raise FlagPerfError("the stream was cut off")
    return data


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace")
