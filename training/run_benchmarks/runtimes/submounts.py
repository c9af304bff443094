"""What is mounted below a read-only mount of a container: engines leave it writable, and it is the host's own."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

from run_benchmarks.runtimes.base import Mount
from run_benchmarks.transports.base import WHOLE_BYTES, Transport, checked

# Each folder as the kernel calls it, ended by a NUL, and the host's mounts (proc_pid_mountinfo(5)).
LIST = r'for path; do printf "%s\0" "$(readlink -f -- "$path")"; done; exec cat /proc/self/mountinfo'
LISTING_S = 60.0
MOUNT_POINT = 4  # the field of a line


async def with_submounts(
    transport: Transport, mounts: Sequence[Mount], taken: Collection[str] = ()
) -> tuple[Mount, ...]:
    """`mounts`, and one more, read-only, for all that the host has mounted below those of them that are read-only.

    Docker before 25 and Podman make the top of such a mount read-only alone. `taken`: paths inside of further mounts,
    which stay as they are.

    Raises:
        CommandError: the host does not say what is mounted.
    """
    closed = [mount for mount in mounts if mount.read_only]
    if not closed:
        return tuple(mounts)
    words = ("sh", "-c", LIST, "sh", *(mount.host for mount in closed))
    listed = await checked(transport, words, timeout=LISTING_S, held=WHOLE_BYTES)
    *folders, mountinfo = listed.whole_stdout().split("\0")
    points = sorted(set(_mount_points(mountinfo)))
    below = {
        inner.inside: inner
        for mount, folder in zip(closed, folders, strict=False)
        for inner in _below(mount, folder, points)
    }
    free = below.keys() - {mount.inside for mount in mounts} - set(taken)
    return (*mounts, *(below[inside] for inside in sorted(free)))


def _below(mount: Mount, folder: str, points: Sequence[str]) -> Iterator[Mount]:
    for point in points:
        if point != folder and PurePosixPath(point).is_relative_to(folder):
            yield Mount(point, str(mount.inside / PurePosixPath(point).relative_to(folder)))


def _mount_points(mountinfo: str) -> Iterator[str]:
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if len(fields) > MOUNT_POINT:
            yield re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), fields[MOUNT_POINT])
