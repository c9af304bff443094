"""Files as a stream: tar's plainest form, which has no links, no sparse files and nothing compressed, and checksums.

The reader is strict, and takes over nothing but the content of files that were asked for. What a general reader of
archives understands besides (names and sizes of any length in headers of their own) is what a hostile host would use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from run_benchmarks.stages.run_folder import GO_BELOW
from utils.errors import FlagPerfError
from utils.manifest import sha256_of

TAR = (
    "tar --format=ustar --blocking-factor=1 --no-recursion --no-unquote --hard-dereference "
    "--owner=0 --group=0 --mtime=@0"
)
# The names, each with "./" before it, come on standard input. None holds a folder: no link is on the way to a file.
SEND = f'{GO_BELOW}exec xargs -0rx sh -c \'{TAR} -cf - -- "$@"; sha256sum --zero -- "$@"\' sh'
SOME_FAILED = 123  # what xargs says where a file has vanished meanwhile
BLOCK = 512
OVERHEAD = 3 * BLOCK  # at most, of a file: its header, what fills its last block, its checksum
PIECE = 2**20


def unpack(stream: BinaryIO, target: Path, largest: Mapping[str, int]) -> set[str]:
    """Read what SEND has printed into the folder `target`.

    Args:
        largest: the files that were asked for, by name, and how many bytes each may have.

    Returns:
        The names of those whose checksums agree; others are not kept.

    Raises:
        FlagPerfError: the stream is none of SEND's, or was cut off.
    """
    came = set()
    while (header := stream.read(BLOCK)).strip(b"\0"):
        name, size = _header(header)
        if size > largest.get(name, -1):
            raise FlagPerfError(f"the stream holds what was not asked for: {name[:80]!r}, {size} bytes")
        with (target / name).open("wb") as file:
            for length in _pieces(size):
                file.write(_exactly(stream, length))
        _exactly(stream, -size % BLOCK)
        came.add(name)
    stream.read(BLOCK)  # an archive ends with two empty blocks
    sums = _sums(stream.read(len(largest) * OVERHEAD).decode(errors="replace"))
    whole = {name for name in came if sums.get(name) == sha256_of(target / name)}
    for name in came - whole:
        (target / name).unlink()
    return whole


def _header(block: bytes) -> tuple[str, int]:
    """The name and the size of a plain file."""
    name = block[:100].rstrip(b"\0").decode(errors="replace").removeprefix("./")
    size, kind = block[124:136].rstrip(b"\0 "), block[156:157]
    if len(block) < BLOCK or kind != b"0" or not size.isdigit():
        raise FlagPerfError(f"the stream is broken, or holds something else than a file: {name[:80]!r}")
    try:
        return name, int(size, 8)
    except ValueError as error:
        raise FlagPerfError(f"the stream is broken: {name[:80]!r} has no size") from error


def _pieces(size: int) -> Iterator[int]:
    return (min(PIECE, size - start) for start in range(0, size, PIECE))


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise FlagPerfError("the stream was cut off")
    return data


def _sums(records: str) -> dict[str, str]:
    """Name -> SHA-256."""
    parted = (record.partition("  ./") for record in records.split("\0"))
    return {name: digest for digest, _, name in parted}
