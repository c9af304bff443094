"""What lies in a node's folder, as its host lists it, and which of it is brought to the controller."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from pathlib import PurePosixPath
from typing import NamedTuple

from run_benchmarks.stages.run_folder import GO_BELOW
from utils.control_groups import IDENTITY_FILE
from utils.errors import FlagPerfError
from utils.inventory import INVENTORY_FILE
from utils.node import rank_log_name
from utils.search.events import CONTROLLER_LOG
from utils.telemetry.lines import HOST_LOGS, MONITOR_LOG, TELEMETRY_FILE

# Logs of days are far smaller; core dumps and profiles are not.
LARGEST_FILE = 2**30
LARGEST_TELEMETRY = 4 * 2**30  # 64 devices ten times a second for eight hours
LARGEST_WHOLE = 8 * 2**30
SMALL_STREAM = 64 * 2**20  # files that have no more together come at once
MOST_FILES = 1000
LONGEST_NAME = 98  # bytes: with "./" before it, what a plain header of tar holds
MOST_FOLDERS = 8  # one in the other
MOST_FOLDERS_ASKED = 100  # each is a command
LARGEST_LISTING = 2**19  # bytes: thousands of files, of which MOST_FILES come
# So much of the controller's disk, and this part of it, stay free for later rounds whatever a task leaves, ...
KEPT, KEPT_PART = 2**30, 1 / 20
# ... and so much is not even filled with logs that a verdict needs: the summary has to be written.
KEPT_FOR_SUMMARY = 2**24
# What the monitor writes on every node. It is listed and brought first, as are the node's own logs: whatever else a
# task leaves, it costs none of them. Telemetry, which may be the largest, comes last of them.
_OF_MONITOR = frozenset({INVENTORY_FILE, IDENTITY_FILE, MONITOR_LOG, *HOST_LOGS, TELEMETRY_FILE})
_IS_OF_RANK = re.compile(translate(rank_log_name("*"))).match
# However large, a round is judged by these; of what else is FlagPerf's own so much is, or a hundredth of what is free,
# and the rest is a task's doing.
_DECISIVE = frozenset({rank_log_name(0), CONTROLLER_LOG})
LARGEST_OWN = 64 * 2**20
_OTHER = 4  # behind the places of FlagPerf's own

FIRST = frozenset({rank_log_name(0)})

NOT_THERE = 9
# $2: how deep; then what `own_names` gives. A record an entry: its kind (`r`: a file that may be read), size and path.
# The folder's own comes first, so that no record means that there is no find. What lies below a folder that is too deep
# is not looked at.
_FILE = '-type f -readable -printf "r %s %P\\0" -o -printf "%y %s %P\\0"'
LIST = (
    f'[ -e "$0/$1" ] || [ -L "$0/$1" ] || exit {NOT_THERE}; {GO_BELOW}depth=$2; shift 2; '
    f'{{ find . -maxdepth 1 -path . -printf ". 0 \\0" -o ! -type d \\( "$@" \\) \\( {_FILE} \\); '
    f'find . -mindepth 1 -maxdepth "$depth" -type d -path ".{"/*" * (MOST_FOLDERS + 1)}" -printf "D 0 %P\\0" '
    f"-o -type d -readable -executable -o {_FILE} -type d -prune; }} | head -c {LARGEST_LISTING}"
)
DEEPEST, TOP = MOST_FOLDERS + 1, 1
FILE, DEEP, REST = "r", "D", "..."  # REST: what the list was too long for
NO_FILE = {"l": "a link", "p": "a pipe", "s": "a socket", "b": "a device", "c": "a device"}
UNREADABLE = {"f": "the ssh user may not read it", "d": "the ssh user may not read this folder"}
NO_NAMES = frozenset(
    {"", ".", ".."}
)  # of a path's parts: it would not be below the folder, or is written oddly
UNNAMABLE = "\N{REPLACEMENT CHARACTER}"  # what a byte that is not UTF-8 was read as


class Entry(NamedTuple):  # made sooner than a dataclass: of a flood there are half a million
    """Something in a node's folder: `kind` as LIST gives it, `size` in bytes, `path` below the folder."""

    kind: str
    size: int
    path: str


def largest(path: str) -> int:
    """How many bytes a file below the node's folder may have; of rank 0's log so many are brought."""
    return LARGEST_TELEMETRY if path == TELEMETRY_FILE else LARGEST_FILE


class LeftOut(NamedTuple):
    """What is not brought, and why.

    has_content: there is more to it than its name, which stays on the host. has_no_room: there is none for it on the
    controller's disk, however large that is. is_full: writing a log of FlagPerf's own has found the disk full.
    """

    path: str
    why: str
    has_content: bool = True
    has_no_room: bool = False
    is_full: bool = False


def is_cut(listing: str) -> bool:
    """Whether there is more than LIST has printed."""
    return len(listing.encode()) >= LARGEST_LISTING


def read_listing(listing: str) -> list[Entry]:
    """The entries that LIST has printed, less the one that it was cut in; of a path listed twice the last.

    Raises:
        FlagPerfError: it was not LIST that printed this, or a path would leave the folder.
    """
    own, *records = listing.split("\0")[:-1] or [""]
    if own != ". 0 ":
        raise FlagPerfError("the folder could not be listed: is GNU find there?")
    return list({entry.path: entry for entry in map(_entry, records)}.values())


def _entry(record: str) -> Entry:
    kind, _, rest = record.partition(" ")
    size, _, path = rest.partition(" ")
    if not (size.isdecimal() and len(size) < 20) or not NO_NAMES.isdisjoint(path.split("/")):
        raise FlagPerfError(f"the host's list of the folder is broken: {record[:80]!r}")
    return Entry(kind, int(size), path)


def own_names(own_logs: Collection[str]) -> tuple[str, ...]:
    """The words by which `find` finds FlagPerf's own logs."""
    return tuple(word for name in sorted(_OF_MONITOR.union(own_logs)) for word in ("-o", "-name", name))[1:]


def choose(
    entries: Iterable[Entry], own_logs: Collection[str] = FIRST
) -> tuple[dict[str, int], tuple[LeftOut, ...]]:
    """Which files to bring, path -> size, and what is left out.

    FlagPerf's own go first, then the shallow and the small: a case's logs are both.

    Args:
        own_logs: see `Node.own_logs`; another node's is a file like any other.
    """
    chosen: dict[str, int] = {}
    left_out = []
    total = 0
    folders: set[str] = set()
    for entry in sorted(entries, key=lambda each: _place(each, own_logs)):
        why = _why_not(entry)
        folder = entry.path.rpartition("/")[0]
        size = min(entry.size, largest(entry.path))
        if not why and (len(chosen) == MOST_FILES or total + size > LARGEST_WHOLE):
            why = f"with it there are more than {MOST_FILES} files or {LARGEST_WHOLE >> 30} GiB"
        if not why and folder and len(folders | {folder}) > MOST_FOLDERS_ASKED:
            why = f"with it there are files in more than {MOST_FOLDERS_ASKED} folders"
        if why:
            left_out.append(LeftOut(entry.path, why, entry.kind not in NO_FILE))
        else:
            chosen[entry.path] = entry.size
            total += size
            folders |= {folder} - {""}
        if not why and entry.size > largest(entry.path):
            left_out.append(LeftOut(f"the middle of {entry.path}", _too_large(entry)))
    return chosen, tuple(left_out)


@dataclass
class Stream:
    """Files of one folder that come by one command; sizes: name -> bytes on the host."""

    folder: str
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Bytes that come."""
        return sum(
            min(size, largest(path)) for path, size in zip(self.paths(), self.sizes.values(), strict=True)
        )

    def paths(self) -> list[str]:
        """The files below the node's folder."""
        return [str(PurePosixPath(self.folder, name)) for name in self.sizes]


@dataclass(frozen=True)
class Room:
    """The controller's disk: bytes that are free, and all; `sharing`: how many folders come at once.

    own_logs: see `Node.own_logs`.
    """

    free: int
    total: int
    sharing: int = 1
    own_logs: Collection[str] = FIRST

    def kept(self, path: str, size: int) -> int:
        """What has to stay free beside a file; beside a log of FlagPerf's own at least what it takes itself.

        So a small disk is no reason to lose the logs that a verdict needs, and one of them no reason to lose others.
        """
        part = int(self.total * KEPT_PART)
        is_small = size <= max(LARGEST_OWN, self.free // 100)
        is_needed = self.is_own(path) and (is_small or path in _DECISIVE or path == TELEMETRY_FILE)
        return max(size, min(KEPT_FOR_SUMMARY, part)) if is_needed else max(KEPT, part)

    def is_own(self, path: str) -> bool:
        """Whether a file is a log of FlagPerf's own."""
        return _own_place(path, self.own_logs) < _OTHER

    def for_file(self, path: str, size: int) -> int:
        """Bytes that this folder may fill with the file and what comes before it."""
        return (self.free - self.kept(path, size)) // self.sharing

    def for_more(self, stream: Stream, taken: int) -> int:
        """Bytes that may come with a stream beyond what was listed, and be unpacked, beside `taken` bytes."""
        if not stream.sizes:
            return 0
        *_, (path, size) = zip(
            stream.paths(), stream.sizes.values(), strict=True
        )  # of others less is kept free
        return max(0, self.for_file(path, min(size, largest(path))) - taken) // 2


def streams_of(sizes: Mapping[str, int], room: Room) -> tuple[list[Stream], list[str]]:
    """The files, path -> size, in streams, folder by folder, and those for which there is no room.

    What goes wrong with a stream costs its files alone, so a large file has its own, and what was chosen first comes
    first. There is one for the top in any case: a plan shows how it is asked for.

    Args:
        room: the controller's disk, where a stream lies beside what is unpacked from it.
    """
    taken = 0
    folders: dict[str, dict[str, int]] = {".": {}}
    for path, size in sizes.items():
        folders.setdefault(str(PurePosixPath(path).parent), {})[PurePosixPath(path).name] = size
    streams, no_room = [Stream(".")], []
    for folder, files in folders.items():
        for name, size in files.items():
            last, alone = streams[-1], Stream(folder, {name: size})
            left = room.for_file(alone.paths()[0], alone.total) - taken
            together = 2 * (last.total + alone.total)
            if (
                last.folder == folder
                and (not last.sizes or together <= 2 * SMALL_STREAM)
                and together <= left
            ):
                last.sizes[name] = size
            elif 2 * alone.total <= left - last.total:
                taken += last.total
                streams.append(alone)
            else:
                no_room += alone.paths()
    return streams, no_room


def _place(entry: Entry, own_logs: Collection[str]) -> tuple[int, int, int, str]:
    """Where an entry stands in the order in which files are chosen."""
    return _own_place(entry.path, own_logs), entry.path.count("/"), entry.size, entry.path


def _own_place(path: str, own_logs: Collection[str]) -> int:
    """Where it stands among FlagPerf's own; _OTHER for what is none."""
    if path in own_logs:
        return 0 if path in _DECISIVE else 2 if _IS_OF_RANK(path) else 1
    return _OTHER if path not in _OF_MONITOR else 3 if path == TELEMETRY_FILE else 1


def _why_not(entry: Entry) -> str:
    if entry.kind == REST:
        return f"the list of the folder is longer than {LARGEST_LISTING >> 10} KiB"
    if entry.kind == DEEP or entry.path.count("/") > MOST_FOLDERS:
        return f"it lies deeper than {MOST_FOLDERS} folders"
    if entry.kind != FILE:
        return NO_FILE.get(entry.kind) or UNREADABLE.get(entry.kind, "no file")
    if entry.size > largest(entry.path) and entry.path != rank_log_name(0):  # of that one both ends come
        return _too_large(entry)
    if UNNAMABLE in entry.path:
        return "its name is not UTF-8"
    if len(entry.path.encode()) <= LONGEST_NAME:
        return ""
    longest = max(len(part.encode()) for part in entry.path.split("/"))
    return f"a name has more than {LONGEST_NAME} bytes" if longest > LONGEST_NAME else ""


def _too_large(entry: Entry) -> str:
    return f"{entry.size / 2**30:.1f} GiB, and a file may have {largest(entry.path) >> 30}"


def note_on(left_out: Sequence[LeftOut], where: str, shown: int = 5) -> str:
    """What was left out and why, bounded in length; `where` it lies on the host, empty where it does not stay there."""
    names: dict[str, list[str]] = {}
    for item in left_out[:shown]:
        names.setdefault(item.why, []).append(item.path[-100:])
    named = [f"{', '.join(alike)} ({why})" for why, alike in names.items()]
    more = [f"and {len(left_out) - shown} more"] if len(left_out) > shown else []
    left = f"it still lies in {where}" if where else "it goes with its host"
    kept = f"; {left}" if any(item.has_content for item in left_out) else ""
    return f"not collected: {', '.join((*named, *more))}{kept}"
