"""The host's memory that this process can still get at most."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from utils.control_groups import ROOT, UNIFIED, number_in, own_folders

_AVAILABLE = re.compile(r"^MemAvailable:\s*(\d+) kB$", re.MULTILINE)
_LIMITS = {UNIFIED: "memory.max", "memory": "memory.limit_in_bytes"}


def free_memory(proc: Path = Path("/proc"), root: Path = ROOT) -> float:
    """Bytes: what the machine has available, or less where a control group may not have as much; infinite if untold.

    Of a group it is the limit, whatever the group has used of it: what others of its processes will give back, and what
    the kernel only keeps for them, is not known.
    """
    return min([*_available(proc), *_limits(proc, root)], default=math.inf)


def _available(proc: Path) -> Iterator[int]:
    try:
        text = (proc / "meminfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return
    if found := _AVAILABLE.search(text):
        yield int(found[1]) * 1024


def _limits(proc: Path, root: Path) -> Iterator[int]:
    """Of this process's group and of those above it, as far as they are seen from here."""
    folders = own_folders(proc, root)
    for name in _LIMITS.keys() & folders.keys():
        for folder in (folders[name], *folders[name].parents):
            limit = number_in(folder / _LIMITS[name]) if folder.is_relative_to(root) else None
            if limit is not None:
                yield limit
