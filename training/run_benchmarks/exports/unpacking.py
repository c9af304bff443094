"""An archive, opened: a stranger's file, of which nothing is believed before its checksums are right.

Only plain files of bounded number and size come out of it, below a folder of their own; what it announces besides is
not read.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from run_benchmarks.exports.archive import ABOUT, CODE, FORMAT, SUMS
from run_benchmarks.exports.run_files import LARGEST_FILE, MOST_FILES
from run_benchmarks.reading import read_object
from run_benchmarks.stages.plain_tar import BLOCK, content, plain_file
from run_benchmarks.stages.tree import LARGEST_TREE
from utils.errors import FlagPerfError

LARGEST_ARCHIVE = 2**34  # bytes, unpacked
# The text of logs and samples is packed to a twentieth; what is packed to far less was made to fill a disk.
MOST_TIMES, SMALL = 200, 2**26
_SUM = re.compile(r"([0-9a-f]{64})  (\S.*)")
_LONGEST_SUM = 2**10  # bytes: a name has 256 at most
_BROKEN = (zlib.error, EOFError, OSError, ValueError)


def unpack(archive: Path, folder: Path) -> dict[str, Any]:
    """Put the files of an archive into the empty `folder`; what it says of itself.

    Raises:
        FlagPerfError: it is no archive of a run, holds what no archive of a run holds, or was altered.
    """
    try:
        if not archive.is_file():
            raise _refusal(archive, "is no file")
        with gzip.open(archive) as stream:
            largest = min(LARGEST_ARCHIVE, max(SMALL, MOST_TIMES * archive.stat().st_size))
            sums = _extract(cast("BinaryIO", stream), archive, folder, largest)
    except _BROKEN as error:
        reason = getattr(error, "strerror", None) or error
        raise _refusal(archive, f"cannot be unpacked: {reason}") from error
    _compare(archive, folder, sums)
    about = read_object(folder / ABOUT)
    if about is None or about.get("format") != FORMAT:
        raise _refusal(archive, f"its {ABOUT} is not of the form {FORMAT}, which this FlagPerf reads")
    return dict(about)


def _extract(stream: BinaryIO, archive: Path, folder: Path, largest: int) -> dict[str, str]:
    """Name -> SHA-256 of every file; `largest`: how many bytes they may have together."""
    sums: dict[str, str] = {}
    whole = 0
    while (header := stream.read(BLOCK)).strip(b"\0"):
        try:
            name, size = plain_file(header)
            whole += size
            _check(name, sums)
            most = LARGEST_TREE if name.startswith(CODE) else LARGEST_FILE
            if size > most or whole > largest or len(sums) >= MOST_FILES:
                raise FlagPerfError(f"it is larger than any archive of a run, from {name!r} on")
            sums[name] = _written(stream, size, folder / name)
        except FlagPerfError as error:
            raise _refusal(archive, f"cannot be unpacked: {error.message}") from error
    return sums


def _check(name: str, sums: Mapping[str, str]) -> None:
    if name in sums:
        raise FlagPerfError(f"{name!r} stands in it twice")
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or str(path) != name:
        raise FlagPerfError(f"{name!r} is no path below a folder")


def _written(stream: BinaryIO, size: int, path: Path) -> str:
    """The SHA-256 of the file that is now at `path`, where nothing was."""
    digest = hashlib.sha256()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        for piece in content(stream, size):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def _compare(archive: Path, folder: Path, sums: dict[str, str]) -> None:
    """Every file has the checksum that the archive's list says, and no other is there."""
    if SUMS not in sums:
        raise _refusal(archive, f"it has no {SUMS}")
    del sums[SUMS]
    altered = f"it was altered: {SUMS} does not fit"
    listed: dict[str, str] = {}
    with (folder / SUMS).open("rb") as file:
        while line := file.readline(_LONGEST_SUM):  # no longer than the archive's files are many
            match = _SUM.fullmatch(line.decode(errors="replace").removesuffix("\n"))
            if not match or match[2] in listed:
                raise _refusal(archive, f"{altered} its form")
            if match[2] not in sums:
                raise _refusal(archive, f"{altered} {match[2]!r}")
            listed[match[2]] = match[1]
    wrong = sorted(name for name in sums if listed.get(name) != sums[name])
    if wrong:
        raise _refusal(archive, f"{altered} {', '.join(map(repr, wrong[:5]))}")


def _refusal(archive: Path, message: str) -> FlagPerfError:
    remedy = "get it again from whoever made it by `run.py export`"
    return FlagPerfError(message, where=str(archive), remedy=remedy)
