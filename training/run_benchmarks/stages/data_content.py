"""Whether files of data hold what their manifest says, by SHA-256: each is read once, and again when it was changed.

What was found right is remembered on the host, in FlagPerf's own folder: a line for each file with its SHA-256, its
path, the file system that it is on and its stamp (inode, times of its last writing and of its last change), which is
another one once anything has been written to the file or in its place. All of that is equal on copies of a disk: what
one host has read stands for another only of a network file system that both have mounted from the same place.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from run_benchmarks.host_log import log_of_host
from run_benchmarks.stages.checks import DoubtError, HostUse
from run_benchmarks.stages.readings import GIB, Reading
from run_benchmarks.stages.work_folder import ENTER, ENTER_OWN, SEE, guard_argv
from run_benchmarks.transports.base import WHOLE_BYTES, CommandTimeoutError, checked
from utils.errors import FlagPerfError, Problem
from utils.manifest import FileEntry, Listed, Manifest, compare_sums
from utils.numbers import whole

# Read by one command, and then remembered: what is cut off later need not be read again.
BATCH_BYTES, BATCH_FILES = 16 * 2**30, 20_000
# A batch may take so long: a disk that reads less a second would not do for the training either.
SLOWEST_BYTES_PER_S, SLOWEST_FILES_PER_S, STARTING_S = 10e6, 100.0, 60.0
# All of a folder may take so long in one run. A manifest can name any size, and a host say that it has it.
LONGEST_READING_S = 6 * 3600.0
READERS = 8  # at once: one reads less than half of what a fast disk gives
RECALL_S = 60.0
LONGEST_BOOT_ID = 64
# A file that was changed just before it was read may be changed once more and keep its time, where clocks are coarse.
SETTLED_S = 2.0
# $0: the data's folder, $1: files for each sha256sum; their paths on standard input, each ended by NUL. What cannot be
# read has no line. Others may be at work on the host, or measure.
READ = (
    'cd -- "$0" && date +%s && { nice -n 19 '
    f'xargs -0 -r -n "$1" -P {READERS} sha256sum -- || [ $? = 123 ]; }}'
)
# $0: the work folder, $2: a name in it. A link, as whatever is no file, is nothing of ours; what is remembered of an
# earlier start of the machine may be of another, whose disk was copied.
_BOOT = "boot=$(cat /proc/sys/kernel/random/boot_id); "
RECALL = (
    f'{_BOOT}[ -d "$0" ] || exit 0; {ENTER_OWN}[ -f "./$2" ] && [ ! -L "./$2" ] || exit 0; '
    'read -r first <"./$2"; [ "$first" != "$boot" ] || cat "./$2"'
)
# The lines on standard input; where there is no work folder yet, none is made for them.
REMEMBER = (
    f'{_BOOT}[ -d "$0" ] || exit 0; {ENTER_OWN}new=$(mktemp "./$2.XXXXXX"); trap \'rm -f "$new"\' EXIT; '
    '{ printf "%s\\n" "$boot"; cat; } >"$new"; mv -fT "$new" "./$2"'
)
# $0: a folder; where its file system is mounted from.
SOURCE = 'df --output=source -- "$0" | tail -n 1'
NETWORK = frozenset(
    [
        "nfs",
        "nfs4",
        "lustre",
        "gpfs",
        "ceph",
        "fuse.ceph",
        "beegfs",
        "beegfs_nodev",
        "glusterfs",
        "fuse.glusterfs",
        "cifs",
        "smb3",
        "orangefs",
        "pvfs2",
        "wekafs",
        "panfs",
        "fuse.juicefs",
        "fuse.JuiceFS",
        "afs",
    ]
)
OWN_ADDRESS = re.compile(r"/{0,2}(localhost|127\.|\[?::1\b)", re.IGNORECASE)  # another machine's each time
Lines = Mapping[str, FileEntry]
"""Lines of the memory, each with the file that it is about."""


@dataclass(frozen=True)
class DataFolder:
    """A folder of data on a host. work: FlagPerf's own folder there. listed: the files that are in it, by path."""

    use: HostUse
    work: str
    path: str
    manifest: Manifest
    listed: Mapping[str, Listed]


async def altered_files(folder: DataFolder) -> list[Problem]:
    """Those files whose names and sizes are right and whose bytes are not; where there is much data, the first of them.

    Raises:
        DoubtError: some cannot be read by the ssh user.
        FlagPerfError: it took too long, or contact was lost.
    """
    wanted = {_line(entry, folder.listed[entry.path]): entry for entry in folder.manifest.files}
    memory = _Memory(folder)
    await memory.recall(wanted)
    unknown = {line: entry for line, entry in wanted.items() if line not in memory.lines}
    if not unknown:
        return []
    shared = await _shared(folder, unknown)
    if shared:
        reading = await folder.use.readings.once(shared, lambda: _read(folder, unknown, memory))
    else:
        reading = await _read(folder, unknown, memory)
    await memory.keep(_right(folder, unknown, reading))
    problems = compare_sums([*unknown.values()], reading.sums, folder.path)
    unread = [entry.path for entry in unknown.values() if entry.path not in reading.sums]
    if unread and not problems:
        raise DoubtError(
            f"{folder.path}: {len(unread)} files could not be read, such as {unread[0]}: what they hold is not known",
            remedy=f"let the ssh user read them on {folder.use.transport.host}",
        )
    return problems


def _line(entry: FileEntry, file: Listed) -> str:
    return f"{entry.sha256} {file.file_system}:{file.device}:{file.stamp} {entry.path}"


async def _shared(folder: DataFolder, unknown: Lines) -> str:
    """Stands for files that other hosts see too: empty where these are not all on a network file system."""
    files = {entry.path: folder.listed[entry.path] for entry in unknown.values()}
    if not all(file.file_system in NETWORK for file in files.values()):
        return ""
    done = await folder.use.transport.run(["sh", "-c", SOURCE, folder.path], timeout=RECALL_S)
    source = done.stdout.strip()
    if not done.ok or not source or OWN_ADDRESS.match(source):
        return ""
    stamps = (f"{entry.sha256} {files[entry.path].stamp} {entry.path}" for entry in unknown.values())
    return hashlib.sha256("\0".join((source, folder.path, *stamps)).encode()).hexdigest()


class _Memory:
    """What is remembered of a folder on its host: the lines of files that were right. Without it all is read again."""

    def __init__(self, folder: DataFolder) -> None:
        self._use, self._work = folder.use, folder.work
        of_host = (
            f"{folder.use.transport.host}\0{folder.path}"  # others may have the same work folder, by NFS
        )
        self._name = f"data-{hashlib.sha256(of_host.encode()).hexdigest()[:16]}"
        self.lines: set[str] = set()

    async def recall(self, wanted: Lines) -> None:
        """Read those of the lines that are there."""
        argv = guard_argv(SEE + RECALL, self._work, self._use.transport, self._name)
        size = LONGEST_BOOT_ID + sum(len(line.encode()) + 1 for line in wanted)
        done = await self._use.transport.run(argv, timeout=RECALL_S, held=size)
        if done.ok:  # another check says what is wrong with the folder
            self.lines = wanted.keys() & set(done.stdout.split("\n"))

    async def keep(self, lines: Collection[str]) -> None:
        """Remember these too."""
        if self.lines.issuperset(lines):
            return
        self.lines.update(lines)
        text = "".join(f"{line}\n" for line in sorted(self.lines)).encode()
        transport, enter = self._use.transport, SEE if self._use.is_only_seen else ENTER
        argv = guard_argv(enter + REMEMBER, self._work, transport, self._name)
        try:
            await checked(transport, argv, stdin=text, timeout=RECALL_S)
        except FlagPerfError as error:
            log_of_host("WARNING", transport.host, f"the next run reads these data again: {error.message}")


async def _read(folder: DataFolder, unknown: Lines, memory: _Memory) -> Reading:
    """The sums of all files, or up to the batch in which one is wrong; each batch that was read is remembered."""
    readings, sums, began_s = folder.use.readings, dict[str, str](), 0.0
    size = sum(entry.bytes for entry in unknown.values())
    readings.begin(size)
    if size > BATCH_BYTES:
        host = folder.use.transport.host
        log_of_host("INFO", host, f"reading {size / GIB:,.0f} GiB in {folder.path}, once")
    end_s = time.monotonic() + LONGEST_READING_S
    for batch in _batches(unknown.values()):
        read = await _read_batch(folder, batch, end_s - time.monotonic())
        sums |= read.sums
        began_s = began_s or read.began_s
        readings.advance(sum(entry.bytes for entry in batch))
        await memory.keep(_right(folder, unknown, Reading(sums, began_s)))
        if compare_sums(batch, read.sums, folder.path):
            break
    return Reading(sums, began_s)


def _right(folder: DataFolder, unknown: Lines, reading: Reading) -> set[str]:
    """The lines of those files that are right, and had been left alone for a while when they were read."""
    settled_s = reading.began_s - SETTLED_S
    return {
        line
        for line, entry in unknown.items()
        if reading.sums.get(entry.path) == entry.sha256 and folder.listed[entry.path].changed_s < settled_s
    }


def _batches(entries: Iterable[FileEntry]) -> Iterator[list[FileEntry]]:
    """The files in parts that are read at a time: none is larger than a batch may be, unless a file is."""
    batch, size = list[FileEntry](), 0
    for entry in entries:
        if batch and (size + entry.bytes > BATCH_BYTES or len(batch) == BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.bytes
    yield batch


async def _read_batch(folder: DataFolder, batch: Sequence[FileEntry], left_s: float) -> Reading:
    """What sha256sum says of these files on the host.

    Args:
        left_s: of the time that there is for the folder.

    Raises:
        FlagPerfError: it cannot be run there, or took too long.
    """
    transport, size = folder.use.transport, sum(entry.bytes for entry in batch)
    pace_s = STARTING_S + size / SLOWEST_BYTES_PER_S + len(batch) / SLOWEST_FILES_PER_S
    limit_s = max(STARTING_S, min(pace_s, left_s))
    together = max(1, min(64, len(batch) // (4 * READERS)))
    argv = ["sh", "-c", READ, folder.path, str(together)]
    paths = "".join(f"./{entry.path}\0" for entry in batch).encode()
    try:
        done = await checked(transport, argv, stdin=paths, timeout=limit_s, held=WHOLE_BYTES)
    except CommandTimeoutError as error:
        message = f"{folder.path}: {size / GIB:,.1f} GiB were not read in {limit_s:,.0f} s"
        remedy = (
            "see what slows the disk or the file server down (`iostat -x 1`, `nfsiostat`); what was read is remembered "
            "there, and not read again"
        )
        raise FlagPerfError(message, where=error.where, remedy=remedy) from error
    began, *lines = done.whole_stdout().split("\n")
    pairs = (line.split("  ./", 1) for line in lines if "  ./" in line)
    return Reading({path: digest for digest, path in pairs}, whole(began) or 0)
