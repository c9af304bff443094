"""Whether a result folder is this user's own, and so may be written to: another user's may be changed meanwhile."""

from __future__ import annotations

import os
import pwd
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from run_benchmarks.names import JOURNAL, RUN_LOG, RunId, new_run_id
from utils.errors import FlagPerfError

OWN_PLACE = "give a folder of your own"
MOST_NAMES = 100  # that a new run tries, ten a second


def check_writable(folder: Path, remedy: str) -> None:
    """See that nobody else can put a link in the place of a folder that is written to, or in it.

    Args:
        remedy: what to do where it is another user's.

    Raises:
        FlagPerfError: it may be somebody else's.
    """
    folder = folder.resolve()
    _check_owner(folder, folder.lstat(), remedy)
    if folder.stat().st_mode & stat.S_IWOTH:
        raise FlagPerfError("everybody may write there", where=str(folder), remedy=f"chmod o-w {folder}")
    for above in folder.parents:  # whose owner may rename what lies there
        status = above.stat()
        if status.st_uid != 0:
            _check_owner(above, status, remedy)
        if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            own = f"chmod o-w {above}"
            raise FlagPerfError("everybody may rename what lies there", where=str(above), remedy=own)


def check_place(path: Path, remedy: str, code: Path) -> None:
    """See that no other user can put a link in the way of what is going to be written at a path.

    Of root also no group, but an owner's own: it writes wherever a link leads. Members of a user's own groups are that
    user's choice.

    Args:
        remedy: what to do where somebody else can.
        code: the folder of the code that runs; whoever owns that is trusted, and with what lies in it.

    Raises:
        FlagPerfError: a folder on the way, of those that there are, is another user's, or others may rename in it.
    """
    there = next(each for each in (path, *path.parents) if each.exists()).resolve()
    if there.is_relative_to(code.resolve()):
        return
    trusted = {0, code.stat().st_uid}
    for each in (there, *there.parents):
        status = each.stat()
        if status.st_uid not in trusted:
            _check_owner(each, status, remedy)
        by_group = (
            os.geteuid() == 0 and bool(status.st_mode & stat.S_IWGRP) and status.st_gid != _own_group(status)
        )
        # sticky, as /tmp: what lies there is renamed by its owner alone
        if (by_group or status.st_mode & stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
            who, mode = ("its group", "g-w") if by_group else ("everybody", "o-w")
            message = f"{who} may put something else in the place of what is written there"
            raise FlagPerfError(message, where=str(each), remedy=f"chmod {mode} {each}, or {remedy}")


def check_private(path: Path, remedy: str) -> None:
    """See that no other user can have made what lies at a path, if anything does, or can change it.

    Args:
        remedy: what to do where somebody else can.

    Raises:
        FlagPerfError: it, or what leads there, is another user's, others may write to it, or it is a link.
    """
    for each in (path, *path.parents):  # not resolved: who made a link says where it leads
        with suppress(FileNotFoundError):
            status = each.lstat()
            if status.st_uid != 0:
                _check_owner(each, status, remedy)
    with suppress(FileNotFoundError):  # an index's journal comes and goes
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink > 1):
            raise FlagPerfError("is a link, which is not followed", where=str(path), remedy=remedy)
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise FlagPerfError("others may write there", where=str(path), remedy=remedy)
        check_writable(path, remedy)


def make_run_folder(log_path: Path, code: Path) -> tuple[RunId, Path]:
    """A new run and its own result folder; an existing one is never written into.

    Args:
        code: see `check_place`.

    Raises:
        FlagPerfError: since the configuration was checked another user has made a folder on the way.
    """
    for _ in range(MOST_NAMES):
        run = new_run_id(datetime.now().astimezone())
        folder = log_path / run.name
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            time.sleep(0.1)  # another run started in this second: the next one has another name
        else:
            check_place(folder, OWN_PLACE, code)
            return run, folder
    message = (
        "folders of the names that new runs would have are there already, also those of the next seconds"
    )
    raise FlagPerfError(
        message, where=str(log_path), remedy=f"see who makes them (ls -l {log_path}), or {OWN_PLACE}"
    )


def _own_group(status: os.stat_result) -> int:
    """The group that is the owner's own."""
    try:
        return pwd.getpwuid(status.st_uid).pw_gid
    except KeyError:  # no user of this machine
        return status.st_uid


def check_own(path: Path) -> None:
    """See that the run in a folder is this user's own, for it is taken up: nobody else may have made a part of it.

    Raises:
        FlagPerfError: it, or something in it that is written to, may be somebody else's.
    """
    folder = path.resolve()
    remedy = "take it up as the user who started it; what another user may have made is not written to"
    for each in _parts(folder):
        status = each.lstat()
        _check_owner(each, status, remedy)
        is_added_to = each.parent == folder and each.name in (JOURNAL, RUN_LOG)
        is_plain = stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
        if not is_plain or (is_added_to and status.st_nlink > 1):
            own = "take it away, if you know who made it, and ask again"
            raise FlagPerfError("is a link, or no file: no run makes it", where=str(each), remedy=own)
    check_writable(folder, remedy)


def _parts(folder: Path) -> Iterator[Path]:
    """A run's folder and what lies in it, down to nodes' folders; each comes before what lies in it is listed."""
    yield folder
    for entry in folder.glob("*"):
        yield entry
        for part in entry.glob("*"):
            yield part
            if part.name.startswith("round"):
                yield from part.glob("*")


def _check_owner(path: Path, status: os.stat_result, remedy: str) -> None:
    if status.st_uid != os.geteuid():
        raise FlagPerfError(f"belongs to the user {status.st_uid}", where=str(path), remedy=remedy)
