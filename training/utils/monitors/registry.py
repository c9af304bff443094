"""The sources that the monitor of a node has, by the names that MONITORS of test_conf.py knows them by.

A further one is a class in a file of this folder and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from utils.monitors.accelerators import Accelerators
from utils.monitors.host import Cores, CpuUtilisation, MemoryUtilisation
from utils.monitors.inventory import Places
from utils.monitors.power import MachinePower, RaplPower
from utils.monitors.sensors import Temperatures
from utils.monitors.source import Source
from utils.monitors.task import TaskUse
from utils.monitors.traffic import Disks, InfiniBand, Network

# Not read more often than this, in seconds, unless MONITORS says so: hundreds of values that tell little more.
LEAST_INTERVAL_S = {"cores": 5.0, "temperature": 5.0}


def _accelerators(places: Places) -> Source | None:
    return Accelerators(places.vendor_dir) if places.vendor_dir else None


def _task(places: Places) -> Source | None:
    return TaskUse(places.log_dir, places.sys) if places.log_dir else None


# None: there is nothing to sample, and nothing to say of it.
SOURCES: Mapping[str, Callable[[Places], Source | None]] = {
    "cpu": lambda places: CpuUtilisation(places.proc),
    "cores": lambda places: Cores(places.proc, places.sys),
    "mem": lambda places: MemoryUtilisation(places.proc),
    "disk": lambda places: Disks(places.sys),
    "network": lambda places: Network(places.sys),
    "infiniband": lambda places: InfiniBand(places.sys),
    "temperature": lambda places: Temperatures(places.sys),
    "pwr": lambda places: MachinePower(places.sys),
    "rapl": lambda places: RaplPower(places.sys),
    "task": _task,
    "accelerators": _accelerators,
}
