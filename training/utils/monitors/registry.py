"""The sources that the monitor of a node has, by the names that MONITORS of test_conf.py knows them by.

A further one is a class in a file of this folder and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from utils.monitors.accelerators import Accelerators
from utils.monitors.host import Cores, CpuUtilisation, MemoryUtilisation
from utils.monitors.power import MachinePower, RaplPower
from utils.monitors.sensors import Temperatures
from utils.monitors.source import Source
from utils.monitors.traffic import Disks, InfiniBand, Network


@dataclass(frozen=True)
class Site:
    """Where sources look: the host's /proc and /sys, and the vendor's folder."""

    proc: Path
    sys: Path
    vendor_dir: Path | None = None


# Not read more often than this, in seconds, unless MONITORS says so: hundreds of values that tell little more.
SELDOM = {"cores": 5.0, "temperature": 5.0}


def _accelerators(site: Site) -> Source | None:
    return Accelerators(site.vendor_dir) if site.vendor_dir else None


# None: there is nothing to sample, and nothing to say of it.
SOURCES: Mapping[str, Callable[[Site], Source | None]] = {
    "cpu": lambda site: CpuUtilisation(site.proc),
    "cores": lambda site: Cores(site.proc, site.sys),
    "mem": lambda site: MemoryUtilisation(site.proc),
    "disk": lambda site: Disks(site.sys),
    "network": lambda site: Network(site.sys),
    "infiniband": lambda site: InfiniBand(site.sys),
    "temperature": lambda site: Temperatures(site.sys),
    "pwr": lambda site: MachinePower(site.sys),
    "rapl": lambda site: RaplPower(site.sys),
    "accelerators": _accelerators,
}
