"""An archive, opened: a stranger's file, of which nothing is believed before its checksums are right.

Only plain files of bounded number and size come out of it, below a folder of their own (`tarfile`'s filter `data`).
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any

from run_benchmarks.exports.archive import ABOUT, FORMAT, SUMS
from run_benchmarks.exports.run_files import LARGEST_FILE, MOST_FILES
from run_benchmarks.reading import read_object
from utils.errors import FlagPerfError

LARGEST_ARCHIVE = 2**34  # bytes, unpacked
_SUM = re.compile(r"([0-9a-f]{64})  (\S.*)")
_BROKEN = (tarfile.TarError, zlib.error, EOFError, OSError, ValueError)


def unpack(archive: Path, folder: Path) -> dict[str, Any]:
    """Put the files of an archive into the empty `folder`; what it says of itself.

    Raises:
        FlagPerfError: it is no archive of a run, holds what no archive of a run holds, or was altered.
    """
    if not hasattr(tarfile, "data_filter"):
        raise FlagPerfError("this Python cannot unpack safely", remedy="use Python 3.10.12, 3.11.4 or newer")
    try:
        with tarfile.open(archive, mode="r|gz") as tar:
            sums = _extract(tar, archive, folder)
    except FlagPerfError:
        raise
    except _BROKEN as error:
        reason = getattr(error, "strerror", None) or error
        raise _refusal(archive, f"cannot be unpacked: {reason}") from error
    _compare(archive, folder, sums)
    about = read_object(folder / ABOUT)
    if about is None or about.get("format") != FORMAT:
        raise _refusal(archive, f"its {ABOUT} is not of the form {FORMAT}, which this FlagPerf reads")
    return dict(about)


def _extract(tar: tarfile.TarFile, archive: Path, folder: Path) -> dict[str, str]:
    """Name -> SHA-256 of every file."""
    sums: dict[str, str] = {}
    size = 0
    for member in tar:
        size += member.size
        if not member.isreg():
            raise _refusal(archive, f"{member.name!r} is no plain file")
        if member.name in sums:
            raise _refusal(archive, f"{member.name!r} stands in it twice")
        if member.size > LARGEST_FILE or size > LARGEST_ARCHIVE or len(sums) >= MOST_FILES:
            raise _refusal(archive, f"it is larger than any archive of a run, from {member.name!r} on")
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or str(path) != member.name:
            raise _refusal(archive, f"{member.name!r} is no path below a folder")
        tar.extract(member, folder, filter="data")
        sums[member.name] = _sha256(folder / path)
    return sums


def _compare(archive: Path, folder: Path, sums: dict[str, str]) -> None:
    """Every file has the checksum that the archive's list says, and no other is there."""
    if SUMS not in sums:
        raise _refusal(archive, f"it has no {SUMS}")
    lines = (folder / SUMS).read_text(encoding="utf-8", errors="replace").splitlines()
    matches = [_SUM.fullmatch(line) for line in lines]
    listed = {match[2]: match[1] for match in matches if match}
    del sums[SUMS]
    wrong = sorted(name for name in listed.keys() | sums.keys() if listed.get(name) != sums.get(name))
    if wrong or not all(matches):
        raise _refusal(
            archive, f"it was altered: {SUMS} does not fit {', '.join(map(repr, wrong[:5])) or 'its form'}"
        )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def _refusal(archive: Path, message: str) -> FlagPerfError:
    remedy = "get it again from whoever made it by `run.py export`"
    return FlagPerfError(message, where=str(archive), remedy=remedy)
