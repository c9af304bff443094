"""What is mounted below a read-only mount of a container: engines leave it writable, and it is the host's own."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from run_benchmarks.runtimes.base import Mount
from run_benchmarks.runtimes.engine import Engine
from run_benchmarks.transports.base import Transport, checked
from utils.errors import FlagPerfError

# Each folder as the kernel calls it, ended by a NUL, and the host's mounts (proc_pid_mountinfo(5)).
LIST = r'for path; do printf "%s\0" "$(readlink -f -- "$path")"; done; exec cat /proc/self/mountinfo'
# A line a path: whether it can be reached.
REACH = 'for path; do if stat -- "$path" >/dev/null 2>&1; then echo yes; else echo no; fi; done'
IS_ROOT = '[ "$(id -u)" = 0 ]'
LISTING_S = 60.0
LONGEST_LISTING = 2**22  # bytes: a node of Kubernetes with hundreds of pods has half of it
MOST_BELOW = 2000  # mounts; more would not fit into a command line
OCTAL = re.compile(r"\\([0-7]{3})")  # as the kernel writes a blank in a path
MOUNT_POINT = 4  # the field of a line
LONGEST_PATH = 2**12  # as Linux has it
MOST_NAMED = 5


@dataclass(frozen=True)
class HostMount:
    """A mount of the host. owner: who alone reaches it, be others root: the user ID behind FUSE; or empty."""

    number: str
    parent: str
    point: str
    owner: str = ""


async def with_submounts(
    transport: Transport, engine: Engine | None, mounts: Sequence[Mount], taken: Collection[str] = ()
) -> tuple[Mount, ...]:
    """`mounts`, and one more, read-only, for all that the host has mounted below those of them that are read-only.

    Docker before 25 and Podman make the top of such a mount read-only alone. What neither the engine nor a container
    of its can reach has none, which the engine would refuse. `taken`: paths inside of further mounts, which stay as
    they are. `engine`: None where what mounts has no rights but the user's.

    Raises:
        CommandError: the host does not say what is mounted.
        FlagPerfError: something of it could be written to from a container all the same, or it is too much.
    """
    closed = [mount for mount in mounts if mount.read_only]
    if not closed:
        return tuple(mounts)
    folders, seen = await _listed(transport, closed)
    points = sorted({mount.point for mount in await _reached(transport, engine, seen)})
    below = {
        inner.inside: inner
        for mount, folder in zip(closed, folders, strict=False)
        for inner in _below(mount, folder, points)
    }
    free = below.keys() - {mount.inside for mount in mounts} - set(taken)
    return (*mounts, *(below[inside] for inside in sorted(free)))


async def _listed(transport: Transport, closed: Sequence[Mount]) -> tuple[list[str], list[HostMount]]:
    """Each of the folders as the kernel calls it, see `_is_below`, and the mounts below them."""
    words = ("sh", "-c", LIST, "sh", *(mount.host for mount in closed))
    listed = await checked(transport, words, timeout=LISTING_S, held=LONGEST_LISTING)
    *paths, mountinfo = listed.whole_stdout().split("\0", len(closed))
    folders = [_with_slash(path) if path else "" for path in paths]
    try:  # in a thread: a host may print anything
        return folders, await asyncio.to_thread(_seen_below, folders, mountinfo)
    except ValueError as error:
        shown = ", ".join(mount.host for mount in closed)
        remedy = "see there what is mounted (`findmnt`), and name a folder that holds less"
        raise FlagPerfError(f"below {shown} {error}", where=transport.host, remedy=remedy) from None


async def _reached(
    transport: Transport, engine: Engine | None, mounts: Sequence[HostMount]
) -> list[HostMount]:
    """Those that containers can reach: root's all, a user's what that user can."""
    is_roots = ("sh", "-c", engine.IS_ROOTS, engine.command) if engine else ("sh", "-c", IS_ROOT)
    if not mounts or (await transport.run(is_roots, timeout=LISTING_S)).ok:
        _check_owners(transport.host, mounts)
        return list(mounts)
    inside = (engine.command, *engine.AS_INSIDE) if engine and engine.AS_INSIDE else ()
    words = (*inside, "sh", "-c", REACH, "sh", *(mount.point for mount in mounts))
    answers = (await checked(transport, words, timeout=LISTING_S)).whole_stdout().split()
    return [mount for mount, answer in zip(mounts, answers, strict=False) if answer == "yes"]


def _check_owners(host: str, mounts: Sequence[HostMount]) -> None:
    """Root's engine cannot mount what FUSE keeps from root: it would be there, writable, for an image's `USER`.

    Raises:
        FlagPerfError: there is such a mount.
    """
    private = [mount for mount in mounts if mount.owner not in ("", "0")]
    if private:
        shown = ", ".join(f"{mount.point} (user ID {mount.owner})" for mount in private[:MOST_NAMED])
        more = len(private) - MOST_NAMED
        message = (
            f"mounted by FUSE for one user alone: {shown}{f' and {more} more' if more > 0 else ''}. The engine cannot "
            "make that read-only, and a container of that user ID could write to it"
        )
        remedy = "unmount it while FlagPerf runs (`fusermount -u`), mount it elsewhere, or mount it with `allow_other`"
        raise FlagPerfError(message, where=host, remedy=remedy)


def _below(mount: Mount, folder: str, points: Sequence[str]) -> Iterator[Mount]:
    for point in points:
        if _is_below(point, [folder]):
            yield Mount(point, f"{_with_slash(mount.inside)}{point[len(folder) :]}")


def _with_slash(path: str) -> str:
    """With one at its end: paths as the kernel writes them are compared as texts, for a thousand hosts have many."""
    return f"{path.rstrip('/')}/"


def _is_below(point: str, folders: Sequence[str]) -> bool:
    """`folders`: with a slash at their ends, or empty for one that is not there."""
    return any(folder and point.startswith(folder) and point != folder for folder in folders)


def _seen_below(folders: Sequence[str], mountinfo: str) -> list[HostMount]:
    """The mounts below the folders that can be seen.

    Raises:
        ValueError: they are too many.
    """
    near: list[HostMount] = []  # with those in which the folders lie: one of them may hide another
    below = 0
    for mount in _mounts_in(mountinfo):
        is_below, own = _is_below(mount.point, folders), _with_slash(mount.point)
        if is_below or any(folder.startswith(own) for folder in folders):
            near.append(mount)
            below += is_below
        if below > MOST_BELOW:
            raise ValueError(f"lie more than the {MOST_BELOW} mounts that a container can be given")
    return [mount for mount in _not_hidden(near) if _is_below(mount.point, folders)]


def _not_hidden(mounts: Sequence[HostMount]) -> Iterator[HostMount]:
    """Those that can be seen: none has been mounted since on a folder above them, or above what they are mounted on.

    A mount that came first to a folder is the parent of what is mounted below it; one that came later is not.
    """
    children = defaultdict(list)
    for mount in mounts:
        children[mount.parent].append(mount)
    waiting = [mount for beside in children.values() for mount in _covered(beside)]
    hidden = set()
    while waiting:
        number = waiting.pop().number
        if number not in hidden:
            hidden.add(number)
            waiting += children[number]
    return (mount for mount in mounts if mount.number not in hidden)


def _covered(beside: Iterable[HostMount]) -> Iterator[HostMount]:
    """Of mounts on one parent those that lie below another: in this order, they follow on that one."""
    above = ""
    for path, mount in sorted(((_with_slash(mount.point), mount) for mount in beside), key=itemgetter(0)):
        if above and path.startswith(above) and path != above:
            yield mount
        else:
            above = path


def _mounts_in(mountinfo: str) -> Iterator[HostMount]:
    for line in mountinfo.split("\n"):  # names may hold what else ends a line for Python
        fields, (kind, *_, options) = line.split(" "), [*line.partition(" - ")[2].split(" "), ""][:3]
        if len(fields) > MOUNT_POINT and len(fields[MOUNT_POINT]) <= LONGEST_PATH:
            point = OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[MOUNT_POINT])
            yield HostMount(fields[0], fields[1], point, _owner(kind, options.split(",")))


def _owner(kind: str, options: Sequence[str]) -> str:
    if not kind.startswith("fuse") or "allow_other" in options:
        return ""
    return next((word.partition("=")[2] for word in options if word.startswith("user_id=")), "")
