"""The controller's disk is full: how that is known, what is said, and room that is kept for the run's own words."""

from __future__ import annotations

import ctypes
import errno
import os

from utils.errors import FlagPerfError

FULL = "the controller's disk is full"
REMEDY = (
    "free space there; if the run has ended by then, `run.py resume` brings home what is still on the hosts"
)


class NoRoomError(FlagPerfError):
    """What comes from a host has no room on the controller's disk."""


_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of linux/falloc.h
_ALLOCATE = getattr(ctypes.CDLL(None), "fallocate", None)  # Python's own makes the file longer
if _ALLOCATE:
    _ALLOCATE.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def is_full(error: BaseException) -> bool:
    """Whether a disk had no room."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


def unwritable(error: OSError) -> FlagPerfError:
    """That what comes from a host cannot be written here."""
    return (NoRoomError if is_full(error) else FlagPerfError)(f"it cannot be written here: {error}")


def unwritten_file(error: BaseException) -> str:
    """The file for which a disk had no room; empty where that is not what happened, or nobody knows which."""
    return str(error.filename or "") if isinstance(error, OSError) and is_full(error) else ""


def full_text(path: object) -> str:
    """That a file cannot be written, for the disk is full."""
    return f"{FULL}: {path} cannot be written"


def keep_room(number: int, size: int) -> None:
    """Let the file system keep room for `size` more bytes at the end of an open file, as far as it can do that.

    So the file can be added to when the disk is full. It looks no longer for that; `give_room_back` ends it.
    """
    if _ALLOCATE:
        _ALLOCATE(number, _KEEP_SIZE, os.fstat(number).st_size, size)


def give_room_back(number: int) -> None:
    """Keep no more room for a file than it takes."""
    os.ftruncate(number, os.fstat(number).st_size)
