"""Numbered lines of one of ReCoRD's files, from a folder or from the archive as it is downloaded."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from utils.errors import FlagPerfError


class MalformedInputError(FlagPerfError):
    """What the user gave is not what it should be: `where` names file and line."""


def numbered_lines(record: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """(where, line) of every line of `name` in the folder or zip archive `record`.

    Raises:
        MalformedInputError: there is no such file, it is empty, or it cannot be read to its end.
    """
    number, place = 0, f"{record / name}"
    try:
        with _opened(record, name) as stream:
            for number, line in enumerate(stream, start=1):
                yield f"{place}, line {number}", line
    except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "get ReCoRD's archive again, or give the folder that it was unpacked into"
        raise MalformedInputError(
            f"cannot be read after line {number}: {reason}", where=place, remedy=remedy
        ) from None
    if not number:
        raise MalformedInputError("an empty file", where=place, remedy="get the file again")


def _opened(record: Path, name: str) -> IO[bytes]:
    if record.is_dir():
        return (record / name).open("rb")
    archive = zipfile.ZipFile(record)
    members = [
        member for member in archive.namelist() if member.split("/")[-1] == name and "__MACOSX" not in member
    ]
    if len(members) != 1:
        raise zipfile.BadZipFile(f"the archive holds {len(members)} files of this name")
    return archive.open(members[0])
