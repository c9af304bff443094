"""Whether a folder that an earlier run left is this user's own: others can foresee its name.

Where the folder above is open to all, as /tmp, they could make one, have their data in it taken for finished ones, and
files of this user written or removed through their links.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from utils.errors import FlagPerfError

WRITABLE = "may be written to by others"
_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ENTERED_BY_OTHERS = stat.S_IXGRP | stat.S_IXOTH


def check_left_by_this_user(folder: Path, parts: Sequence[Path]) -> None:
    """See that this user made a folder and those in it, and that nobody else can have written there.

    Args:
        parts: folders in it; they may not be there yet.

    Raises:
        FlagPerfError: somebody else can have made something there, or it is a link or no folder.
        OSError: it is not there, or cannot be looked at.
    """
    status, user = folder.lstat(), _user_in(folder.parent)
    _check(folder, status, user, folder)
    if status.st_mode & _BY_OTHERS:
        raise _refused(folder, WRITABLE, folder)
    closed = not status.st_mode & _ENTERED_BY_OTHERS  # what modes its folders have is then of no account
    for part in parts:
        try:
            status = part.lstat()
        except FileNotFoundError:
            continue
        _check(part, status, user, folder)
        if status.st_mode & _BY_OTHERS and not closed:
            raise _refused(part, WRITABLE, folder)


def _check(path: Path, status: os.stat_result, user: int, folder: Path) -> None:
    if not stat.S_ISDIR(status.st_mode):
        raise _refused(path, "is a link, or no folder", folder)
    if status.st_uid != user:
        raise _refused(path, f"belongs to the user {status.st_uid}", folder)


def _user_in(folder: Path) -> int:
    """Whom the files belong to that this process makes in a folder: on NFS root's are often nobody's."""
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_uid


def _refused(path: Path, why: str, folder: Path) -> FlagPerfError:
    own = f"if you made all of it, `chmod -R go-w {folder}` lets it go on; " if why == WRITABLE else ""
    return FlagPerfError(
        f"{why}: nothing that lies there is gone on with",
        where=str(path),
        remedy=f"{own}see who made {folder}, and move it away, or name another --out",
    )
