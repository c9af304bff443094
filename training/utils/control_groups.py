"""Control groups (cgroups(7), both versions): a process's own, and how one that sees other mounts finds them again.

A container may see its own group as the root of all. What stays the same everywhere is the inode number of a group's
folder. Standard library alone: launchers in images with old Pythons use it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
# Below ROOT: of version 2 all in one; of version 1 those that something is read of.
UNIFIED, SEPARATE = ".", ("cpu", "cpuacct", "memory", "blkio")
IDENTITY_FILE = "task_groups.json"  # in the node's folder, by the task's launcher: what `identity` says of it
IDENTITY_BYTES = 4096
NO_LIMIT = 2**60  # bytes; version 1 writes the largest multiple of a page below 2**63
MOST_GROUPS = 100_000  # of a hierarchy that are looked through


def hierarchies(root: Path = ROOT) -> tuple[str, ...]:
    """The folders below `root` that are roots of groups."""
    if (root / "cgroup.controllers").exists():
        return (UNIFIED,)
    return tuple(name for name in SEPARATE if (root / name).is_dir())


def own_folders(proc: Path = Path("/proc"), root: Path = ROOT) -> dict[str, Path]:
    """The folder of this process's group in each hierarchy, as it sees it itself."""
    folders = {}
    for line in _text(proc / "self" / "cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        for name in controllers.split(",") if controllers else (UNIFIED,):
            below = root / name / path.strip("/")
            folders[name] = below if below.is_dir() else root / name
    return folders


def identity(proc: Path = Path("/proc"), root: Path = ROOT) -> dict[str, int]:
    """Hierarchy -> the inode number of this process's group."""
    folders = own_folders(proc, root)
    return {name: folders[name].stat().st_ino for name in hierarchies(root) if name in folders}


def write_identity(folder: Path) -> None:
    """Leave word of this process's groups in a node's folder, for the monitor.

    Raises:
        OSError: it cannot be written.
    """
    new = folder / f"{IDENTITY_FILE}.new"
    new.write_text(json.dumps(identity()), encoding="ascii")
    new.replace(folder / IDENTITY_FILE)


def read_identity(folder: Path) -> dict[str, int]:
    """What `write_identity` left: a stranger's word, of which no more is taken than numbers. Empty where there is none.

    Raises:
        OSError, ValueError: it cannot be read, or is something else.
    """
    try:
        descriptor = os.open(folder / IDENTITY_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return {}
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{IDENTITY_FILE} is no file")
        text = file.read(IDENTITY_BYTES).decode("ascii")
    numbers = json.loads(text)
    if not isinstance(numbers, dict) or any(type(number) is not int for number in numbers.values()):
        raise ValueError(f"{IDENTITY_FILE} holds no numbers of groups: {text[:60]!r}")
    return numbers


def folder_of(inode: int, root: Path) -> Path | None:
    """The group below `root`, or it itself, whose folder has this inode number; no link is followed."""
    for count, folder in enumerate(_groups(root)):
        if folder.stat().st_ino == inode:
            return folder
        if count >= MOST_GROUPS:
            break
    return None


def _groups(root: Path) -> Iterator[Path]:
    """`root` and every group below it, the upper ones first; what is just being removed is passed over."""
    waiting = [root]
    for folder in waiting:
        yield folder
        try:
            with os.scandir(folder) as entries:
                waiting += [folder / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue


def numbers_in(path: Path) -> Mapping[str, int]:
    """Of lines with a name and a number; empty where it cannot be read."""
    pairs = (line.split() for line in _text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def number_in(path: Path) -> int | None:
    """The one number that stands in a file; None for `max`, and where it cannot be read."""
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
