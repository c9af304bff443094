"""Whether the kernel killed processes for want of memory, by its own counters: the container's limit, or the host.

A process that is killed so says nothing: its launcher asks before it starts the ranks and after they have ended, and
leaves a line in its log. Reads what every user may read; standard library alone, for images have old Pythons.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from utils.control_groups import NO_LIMIT, ROOT, UNIFIED, number_in, numbers_in, own_folders

PREFIX = "[MemoryKill] "
OF_GROUP, OF_HOST = "control group", "host"


@dataclass(frozen=True)
class Kills:
    """Counters: processes that were killed (of this control group, else of the whole host), the group's limit met.

    limit_bytes, peak_bytes: the group's limit, and the most that it used; None where there is none, or nobody tells.
    """

    killed: int
    limit_met: int
    limit_bytes: int | None = None
    peak_bytes: int | None = None

    def line_since(self, before: Kills) -> str:
        """The line for the log, with its end; empty where nobody was killed since `before`."""
        if self.killed <= before.killed:
            return ""
        if self.limit_met <= before.limit_met:
            return f"{PREFIX}{OF_HOST}\n"
        figures = {"limit_bytes": self.limit_bytes, "peak_bytes": self.peak_bytes}
        told = "".join(f" {name}={value}" for name, value in figures.items() if value is not None)
        return f"{PREFIX}{OF_GROUP}{told}\n"


def kills(proc: Path = Path("/proc"), root: Path = ROOT) -> Kills:
    """The counters now; what cannot be read counts as 0."""
    folders = own_folders(proc, root)
    if UNIFIED in folders:
        events = numbers_in(folders[UNIFIED] / "memory.events")
        if "oom_kill" in events:
            limit, peak = (number_in(folders[UNIFIED] / name) for name in ("memory.max", "memory.peak"))
            return Kills(events["oom_kill"], events.get("oom", 0), limit, peak)
    if "memory" in folders:  # of cgroup v1, which does not count how often its limit was met
        control = numbers_in(folders["memory"] / "memory.oom_control")
        if "oom_kill" in control:
            names = ("memory.limit_in_bytes", "memory.max_usage_in_bytes")
            limit, peak = (number_in(folders["memory"] / name) for name in names)
            if not 0 < (limit or 0) < NO_LIMIT:
                return Kills(control["oom_kill"], 0)
            return Kills(control["oom_kill"], control["oom_kill"], limit, peak)
    return Kills(numbers_in(proc / "vmstat").get("oom_kill", 0), 0)
