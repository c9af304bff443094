"""What the training itself uses of the host, by the kernel's accounts of its control group (cgroups v1 and v2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from utils.control_groups import (
    NO_LIMIT,
    UNIFIED,
    folder_of,
    hierarchies,
    identity,
    number_in,
    numbers_in,
    read_identity,
)
from utils.monitors.source import Source, SourceUnavailableError
from utils.telemetry.records import Sample, Scope

MIB, US_PER_S, NS_PER_S = 2**20, 10**6, 10**9


class Account(NamedTuple):
    """Where a reading stands: in a file of a hierarchy, alone or behind a name, `scale` times as large."""

    reading: str
    hierarchy: str
    file: str
    name: str = ""
    scale: int = 1


ACCOUNTS = (
    Account("cpu_s", UNIFIED, "cpu.stat", "usage_usec", US_PER_S),
    Account("cpu_limited_s", UNIFIED, "cpu.stat", "throttled_usec", US_PER_S),
    Account("memory_used_mib", UNIFIED, "memory.current", scale=MIB),
    Account("memory_peak_mib", UNIFIED, "memory.peak", scale=MIB),
    Account("memory_total_mib", UNIFIED, "memory.max", scale=MIB),
    Account("memory_kills", UNIFIED, "memory.events", "oom_kill"),
    Account("cpu_s", "cpuacct", "cpuacct.usage", scale=NS_PER_S),
    Account("cpu_limited_s", "cpu", "cpu.stat", "throttled_time", NS_PER_S),
    Account("memory_used_mib", "memory", "memory.usage_in_bytes", scale=MIB),
    Account("memory_peak_mib", "memory", "memory.max_usage_in_bytes", scale=MIB),
    Account("memory_total_mib", "memory", "memory.limit_in_bytes", scale=MIB),
    Account("memory_kills", "memory", "memory.oom_control", "oom_kill"),
)
# Bytes from and to disks: the file of a hierarchy, and in it the number of a disk, a word for the way, a count.
TRAFFIC = {UNIFIED: "io.stat", "blkio": "blkio.throttle.io_service_bytes_recursive"}
_DISK = re.compile(r"^(\d+:\d+) (.*)$", re.MULTILINE)
_MOVED = re.compile(r"\b(rbytes=|wbytes=|Read |Write )(\d+)")
_WAYS = {"r": "read_bytes", "R": "read_bytes", "w": "written_bytes", "W": "written_bytes"}


class TaskUse(Source):
    """The task's control group, once its launcher has left word of it in the node's folder."""

    name = "task"
    scope = Scope.TASK
    never_waits = True
    note = (
        "the task's control group: processor time of all its processes, and how long a limit of processors held them "
        "back; memory with the page cache of what they read and wrote, at most, and its limit; bytes from and to "
        "disks, of cgroup v1 without what the kernel wrote later"
    )

    def __init__(self, log_dir: Path, sys: Path = Path("/sys")) -> None:
        self._log_dir, self._sys = log_dir, sys
        self._root = sys / "fs" / "cgroup"
        self._folders: dict[str, Path] = {}

    def open(self) -> None:
        if not hierarchies(self._root):
            raise SourceUnavailableError(f"no control groups below {self._root}")

    def sample(self, time_ms: int) -> Sequence[Sample]:
        task = {} if self._folders else read_identity(self._log_dir)
        if task:
            self._folders = self._find(task)
            self._disks = set(_disks(self._sys / "class" / "block"))
        readings: dict[str, Any] = {**dict(self._accounts()), **self._traffic()}
        # none yet, or none any more
        return [Sample(time_ms, self.name, **readings)] if readings else []

    def _find(self, task: Mapping[str, int]) -> dict[str, Path]:
        """The task's groups by hierarchy, but for those that this process is in too.

        Raises:
            SourceUnavailableError: there is none.
        """
        own, folders, shared = identity(), {}, False
        for name in hierarchies(self._root):
            folder = folder_of(task[name], self._root / name) if name in task else None
            if folder and name in own and folder_of(own[name], folder):
                shared = True
            elif folder:
                folders[name] = folder
        if folders:
            return folders
        if shared:
            reason = "the task has no control group of its own, as with the runtime `process`: the monitor is in it too"
        else:
            reason = f"the task's control group is none of those below {self._root}"
        raise SourceUnavailableError(reason)

    def _accounts(self) -> Iterator[tuple[str, float]]:
        for account in ACCOUNTS:
            folder = self._folders.get(account.hierarchy)
            if folder:
                path = folder / account.file
                value = numbers_in(path).get(account.name) if account.name else number_in(path)
                if value is not None and value < NO_LIMIT:
                    yield account.reading, value / account.scale

    def _traffic(self) -> dict[str, float]:
        """Of disks that have a device behind them: what is built of others would be counted twice."""
        moved: dict[str, float] = {}
        for hierarchy, folder in self._folders.items():
            text = _text(folder / TRAFFIC[hierarchy]) if hierarchy in TRAFFIC else None
            if text is not None and self._disks:
                moved = {"read_bytes": 0, "written_bytes": 0}
                lines = (line for line in _DISK.finditer(text) if line[1] in self._disks)
                for way, count in chain.from_iterable(_MOVED.findall(line[2]) for line in lines):
                    moved[_WAYS[way[0]]] += int(count)
        return moved


def _disks(blocks: Path) -> Iterator[str]:
    """The numbers of whole disks, `8:0`."""
    for disk in blocks.glob("*"):
        if (disk / "device").exists():
            yield (disk / "dev").read_text().strip()


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None
