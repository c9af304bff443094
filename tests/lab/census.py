"""What there is of a lab on this machine, by name: to look at it, and to show that nothing stays behind."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tests.lab import cgroup, network
from tests.lab.commands import run
from tests.lab.place import Place


def leftovers(place: Place) -> list[str]:
    """Every process, group, link, rule, mount and folder of the lab at `place`; empty: there is none."""
    return [
        *(f"process {pid}" for group in cgroup.existing(place.prefix) for pid in group.pids()),
        *(f"control group {path}" for path in cgroup.ROOT.rglob(f"{place.prefix}*")),
        *(f"link {link}" for link in network.lab_links(place)),
        *(f"rule {line}" for line in run(["iptables-save"]).splitlines() if _is_rule_of(place, line)),
        *(f"mount {mount}" for mount in mounts_below(place.folder)),
        *(f"folder {place.folder}" for _ in range(place.folder.exists())),
    ]


def _is_rule_of(place: Place, line: str) -> bool:
    return not {place.bridge, f"{place.subnet}.0/24"}.isdisjoint(line.split())


def mounts_below(folder: Path) -> list[str]:
    """The mount points below `folder` that this process sees."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if Path(point).is_relative_to(folder)]


def namespaces(pids: Iterable[int | str]) -> dict[str, Path]:
    """The namespaces that the processes `pids` are in: name, as `net:[4026531840]` -> a link to it."""
    found = {}
    for pid in pids:
        # Processes end while we look.
        with suppress(OSError):
            found.update({os.readlink(link): link for link in Path(f"/proc/{pid}/ns").iterdir()})  # noqa: PTH115
    return found


def all_pids() -> list[str]:
    """Every process on this machine."""
    return [path.name for path in Path("/proc").iterdir() if path.name.isdecimal()]
