"""Files as a stream: tar's plainest form, and checksums.

The reader takes over nothing but the content of files that were asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from run_benchmarks.stages.plain_tar import BLOCK, PIECE, content, exactly, pieces, plain_file
from run_benchmarks.stages.run_folder import GO_BELOW
from utils.errors import FlagPerfError
from utils.manifest import sha256_of

TAR = (
    "tar --format=ustar --blocking-factor=1 --no-recursion --no-unquote --hard-dereference "
    "--owner=0 --group=0 --mtime=@0"
)
# The names, each with "./" before it, come on standard input. None holds a folder: no link is on the way to a file.
# Who sends may be another machine that sees the same files, as a user who reads more: no link is opened.
SUMS = (
    f'for file do dd if="$file" iflag=nofollow,nonblock bs={PIECE} status=none | sha256sum | '
    '{ read -r sum _; printf "%s  %s\\0" "$sum" "$file"; }; done'
)
SEND = f"{GO_BELOW}exec xargs -0rx sh -c '{TAR} -cf - -- \"$@\"; {SUMS}' sh"
SOME_FAILED = 123  # what xargs says where a file has vanished meanwhile
OVERHEAD = 3 * BLOCK  # at most, of a file: its header, what fills its last block, its checksum
# Of a log that is too large both ends come: $2 is its name, $3 where the last one begins. Their checksums go first.
END_SIZE = 511 * 2**20
SEND_ENDS = (
    f'{GO_BELOW}part() {{ dd if="./$2" iflag=nofollow,nonblock,fullblock,skip_bytes,count_bytes bs={PIECE} skip="$1" '
    f'count={END_SIZE} status=none; }}; for at in 0 "$3"; do part "$at" "$2" | sha256sum; done; '
    'part 0 "$2" && part "$3" "$2"'
)
SUM_LINE = 64 + len("  -\n")


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
        name, size = plain_file(header)
        name = name.removeprefix("./")
        if size > largest.get(name, -1):
            raise FlagPerfError(f"the stream holds what was not asked for: {name[:80]!r}, {size} bytes")
        with (target / name).open("wb") as file:
            file.writelines(content(stream, size))
        came.add(name)
    stream.read(BLOCK)  # an archive ends with two empty blocks
    sums = _sums(stream.read(len(largest) * OVERHEAD).decode(errors="replace"))
    whole = {name for name in came if sums.get(name) == sha256_of(target / name)}
    for name in came - whole:
        (target / name).unlink()
    return whole


def unpack_ends(stream: BinaryIO, target: Path, left_out: int) -> bool:
    """Read what SEND_ENDS has printed into the file `target`, with a line between the ends that says what is missing.

    Args:
        left_out: bytes between them.

    Returns:
        Whether the checksums agree; if not, the file is not kept.

    Raises:
        FlagPerfError: the stream was cut off.
    """
    sums = [exactly(stream, SUM_LINE)[:64] for _ in range(2)]
    came = []
    with target.open("wb") as file:
        for between in (f"\n[FlagPerf] {left_out} bytes of this log were not collected\n", ""):
            digest = hashlib.sha256()
            for piece in pieces(stream, END_SIZE):
                digest.update(piece)
                file.write(piece)
            file.write(between.encode())
            came.append(digest.hexdigest().encode())
    if came != sums:
        target.unlink()
    return came == sums


def _sums(records: str) -> dict[str, str]:
    """Name -> SHA-256."""
    parted = (record.partition("  ./") for record in records.split("\0"))
    return {name: digest for digest, _, name in parted}
