"""What there is of a lab on this machine, by name: to look at it, and to show that nothing stays behind."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tests.lab import cgroup, network
from tests.lab.commands import run


def leftovers(folder: Path) -> list[str]:
    """Every process, group, link, rule, mount and folder of a lab in `folder`; empty: there is no lab."""
    return [
        *(f"process {pid}" for group in cgroup.existing() for pid in group.pids()),
        *(f"control group {path}" for path in cgroup.ROOT.rglob(f"{cgroup.PREFIX}*")),
        *(f"link {link}" for link in network.lab_links()),
        *(f"rule {line}" for line in run(["iptables-save"]).splitlines() if _is_lab_rule(line)),
        *(f"mount {mount}" for mount in mounts_below(folder)),
        *(f"folder {folder}" for _ in range(folder.exists())),
    ]


def _is_lab_rule(line: str) -> bool:
    return network.BRIDGE in line or f"{network.SUBNET}.0/24" in line


def mounts_below(folder: Path) -> list[str]:
    """The mount points below `folder` that this process sees."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if Path(point).is_relative_to(folder)]


def namespaces() -> set[str]:
    """Every namespace that a process on this machine is in, as `net:[4026531840]`."""
    found = set()
    for link in Path("/proc").glob("[0-9]*/ns/*"):
        # Processes end while we look.
        with suppress(OSError):
            found.add(os.readlink(link))  # noqa: PTH115 - Path.readlink makes a path of what is none
    return found


def namespaces_of(pids: list[int]) -> set[str]:
    """The namespaces of the processes `pids` that this process is not in itself."""
    own = {os.readlink(link) for link in Path("/proc/self/ns").iterdir()}  # noqa: PTH115
    found = {os.readlink(link) for pid in pids for link in Path(f"/proc/{pid}/ns").iterdir()}  # noqa: PTH115
    return found - own
