"""Whether the kernel killed processes for want of memory, by its own counters: the container's limit, or the host.

A process that is killed so says nothing: its launcher asks before it starts the ranks and after they have ended, and
leaves a line in its log. Reads what every user may read; standard library alone, for images have old Pythons.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PREFIX = "[MemoryKill] "
OF_GROUP, OF_HOST = "control group", "host"
ROOT = Path("/sys/fs/cgroup")
NO_LIMIT = 2**60  # bytes; cgroup v1 writes the largest multiple of a page below 2**63


@dataclass(frozen=True)
class Kills:
    """Counters: processes that were killed (of this control group, else of the whole host), the group's limit met.

    limit_bytes, peak_bytes: the group's limit, and the most that it has used; 0 where there is none, or it is not told.
    """

    killed: int
    limit_met: int
    limit_bytes: int = 0
    peak_bytes: int = 0

    def line_since(self, before: Kills) -> str:
        """The line for the log, with its end; empty where nobody was killed since `before`."""
        if self.killed <= before.killed:
            return ""
        if self.limit_met <= before.limit_met:
            return f"{PREFIX}{OF_HOST}\n"
        return f"{PREFIX}{OF_GROUP} limit_bytes={self.limit_bytes} peak_bytes={self.peak_bytes}\n"


def kills(proc: Path = Path("/proc"), root: Path = ROOT) -> Kills:
    """The counters now; what cannot be read counts as 0."""
    for folder in _groups(proc, root):
        events, control = _numbers(folder / "memory.events"), _numbers(folder / "memory.oom_control")
        if "oom_kill" in events:
            limit, peak = (_number(folder / name) for name in ("memory.max", "memory.peak"))
            return Kills(events["oom_kill"], events.get("oom", 0), limit, peak)
        if "oom_kill" in control:  # of cgroup v1, which does not count how often its limit was met
            limit, peak = (_number(folder / f"memory.{name}_in_bytes") for name in ("limit", "max_usage"))
            if not 0 < limit < NO_LIMIT:
                return Kills(control["oom_kill"], 0)
            return Kills(control["oom_kill"], control["oom_kill"], limit, peak)
    return Kills(_numbers(proc / "vmstat").get("oom_kill", 0), 0)


def _groups(proc: Path, root: Path) -> list[Path]:
    """The folders of this process's control group; a container may see its own as the root."""
    folders = []
    for line in _text(proc / "self" / "cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        above = root if not controllers else root / "memory" if "memory" in controllers.split(",") else None
        if above:
            folders += [above / path.strip("/"), above]
    return folders


def _numbers(path: Path) -> dict[str, int]:
    """Of lines with a name and a number."""
    pairs = (line.split() for line in _text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _number(path: Path) -> int:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
