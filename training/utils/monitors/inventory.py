"""What this node is made of, taken once beside the samples: `inventory.json`.

By `lscpu --json`, single values of /sys and /proc, psutil, the package managers and the vendor's own monitor; what one
of them does not say is missing, with the reason.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import resource
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from email.parser import HeaderParser
from importlib import metadata
from pathlib import Path
from typing import Any

from utils.inventory import INVENTORY_FILE, HostInventory, Inventory, MonitorCost, Software
from utils.monitors import INVENTORY_GRACE_S
from utils.monitors.accelerators import describe_accelerators
from utils.monitors.frame import NO_ANSWER, Sampler
from utils.monitors.host import NO_PSUTIL
from utils.monitors.source import SourceUnavailableError

log = logging.getLogger("utils.monitors")

COMMAND_LIMIT_S = 20.0
# Of `lscpu`: what changes from one look to the next.
UNSTEADY = ("BogoMIPS", "MHz", "scaling")
# Below the host's /sys/devices, and below this system's own root, which has the same kernel.
DEVICE_SETTINGS = (
    "system/cpu/cpu0/cpufreq/scaling_driver",
    "system/cpu/cpu0/cpufreq/scaling_governor",
    "system/cpu/cpu0/microcode/version",
    "system/cpu/cpufreq/boost",
    "system/cpu/intel_pstate/no_turbo",
    "system/cpu/smt/control",
    "system/clocksource/clocksource0/current_clocksource",
)
KERNEL_SETTINGS = (
    "proc/sys/kernel/numa_balancing",
    "proc/sys/vm/nr_hugepages",
    "proc/sys/vm/swappiness",
    "sys/kernel/mm/transparent_hugepage/enabled",
)
CGROUP_LIMITS = ("cpu.max", "cpuset.cpus.effective", "memory.max")
MACHINE = (
    "sys_vendor",
    "product_name",
    "board_vendor",
    "board_name",
    "bios_vendor",
    "bios_version",
    "bios_date",
)
NIC_VALUES = ("operstate", "speed", "mtu", "device/vendor", "device/device", "device/numa_node")
UNKNOWN = "-1"  # of a speed or a NUMA node: a virtual interface has none
RDMA_VALUES = ("hca_type", "fw_ver", "board_id", "ports/1/link_layer", "ports/1/rate", "ports/1/state")
LIMITS = ("RLIMIT_MEMLOCK", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_STACK", "RLIMIT_AS")
# A line a package: its name, a tab, its version.
PACKAGE_LISTS = (
    ("dpkg-query", "--show", "--showformat=${binary:Package}\\t${Version}\\n"),
    ("rpm", "--query", "--all", "--queryformat=%{NAME}.%{ARCH}\\t%{VERSION}-%{RELEASE}\\n"),
)


@dataclass(frozen=True)
class Places:
    """Where what is looked at lies: the host's /proc and /sys, this system's root, the vendor's folder, the node's."""

    proc: Path
    sys: Path
    root: Path = Path("/")
    vendor_dir: Path | None = None
    log_dir: Path | None = None


class InventoryTaker:
    """Takes the inventory in a thread of its own, and writes it to `folder`, whole each time.

    The accelerators come last: a library of a vendor's may hang. `finish` adds what the monitor cost.
    """

    def __init__(self, places: Places, folder: Path) -> None:
        self._places, self._file = places, folder / INVENTORY_FILE
        self._begin = time.monotonic()
        self._lock = threading.Lock()
        self._inventory: Inventory | None = None
        self._cost: MonitorCost | None = None
        self._thread = threading.Thread(target=self._take, name="inventory", daemon=True)
        self._thread.start()

    def finish(self, samplers: Sequence[Sampler], limit_s: float = INVENTORY_GRACE_S) -> None:
        """Add the cost of all this, once the samplers have ended; an inventory that is not there yet is waited for."""
        self._thread.join(limit_s)
        with self._lock:
            self._cost = monitor_cost(time.monotonic() - self._begin, samplers)
            if self._inventory:
                self._write(self._inventory)
            else:
                log.error("inventory: not taken: it did not come to an end within %g s", limit_s)

    def _take(self) -> None:
        host, software = host_inventory(self._places), software_inventory(self._places.root)
        silent = {**host.unmeasured, "accelerators": NO_ANSWER}
        self._keep(Inventory(replace(host, unmeasured=silent), software))
        values, unmeasured = _taken({"accelerators": lambda: describe_accelerators(self._places.vendor_dir)})
        self._keep(Inventory(replace(host, unmeasured={**host.unmeasured, **unmeasured}, **values), software))

    def _keep(self, inventory: Inventory) -> None:
        with self._lock:
            self._inventory = inventory
            self._write(inventory)

    def _write(self, inventory: Inventory) -> None:
        """With the cost, once it is there: what comes after the end must not take it away."""
        content = asdict(replace(inventory, monitor=self._cost))
        partial = self._file.with_name(f".{self._file.name}.partial")
        try:
            partial.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            partial.replace(self._file)
        except (OSError, ValueError) as error:  # a full disk ends no monitor
            log.error("inventory: cannot be written: %s", error)
            with suppress(OSError):  # a part of it is of no use, and would be collected as if it were
                partial.unlink()


def monitor_cost(wall_s: float, samplers: Sequence[Sampler]) -> MonitorCost:
    """What this process and the commands that it ran have cost since it began, `wall_s` seconds ago."""
    times = os.times()
    cpu_s = times.user + times.system + times.children_user + times.children_system
    counts = {sampler.source.name: asdict(sampler.counts) for sampler in samplers}
    return MonitorCost(round(cpu_s, 3), round(wall_s, 3), round(cpu_s / wall_s, 5), counts)


def host_inventory(places: Places) -> HostInventory:
    """The host, but for its accelerators."""
    devices = places.sys / "devices"
    values, unmeasured = _taken(
        {
            "kernel": lambda: f"{os.uname().release} {os.uname().version}",
            "cpu": _cpu,
            "memory_bytes": lambda: _memory_bytes(places.proc),
            "machine": lambda: _some(_single_values(places.sys / "class/dmi/id", MACHINE), "no DMI tables"),
            "settings": lambda: {
                **_single_values(devices, DEVICE_SETTINGS, "sys/devices/"),
                **_single_values(places.root, KERNEL_SETTINGS),
            },
            "nics": lambda: _nics(places.sys / "class"),
            "limits": lambda: _limits(places.root / "sys/fs/cgroup"),
        }
    )
    return HostInventory(**values, unmeasured=unmeasured)


def software_inventory(root: Path) -> Software:
    """What is installed where the monitor runs."""
    values, unmeasured = _taken(
        {
            "system": _system,
            "python": platform.python_version,
            "packages": lambda: dict(sorted(_packages())),
            "system_packages": _system_packages,
        }
    )
    return Software(**values, unmeasured=unmeasured)


def _taken(takers: Mapping[str, Callable[[], Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """The values by name, and of those that cannot be had why."""
    values, unmeasured = {}, {}
    for name, take in takers.items():
        try:
            values[name] = take()
        except SourceUnavailableError as error:
            unmeasured[name] = str(error)
        except Exception as error:  # a tool of any machine may fail in any way
            unmeasured[name] = f"{type(error).__name__}: {error}"
    return values, unmeasured


def _cpu() -> dict[str, str]:
    fields = json.loads(_output("lscpu", "--json"))["lscpu"]
    pairs = ((name.rstrip(":"), value) for name, value in _flat(fields))
    return {name: value for name, value in pairs if not any(word in name for word in UNSTEADY)}


def _flat(fields: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """`lscpu`'s fields; younger ones nest them."""
    for each in fields:
        if each.get("data") is not None:
            yield str(each["field"]), str(each["data"])
        yield from _flat(each.get("children") or ())


def _memory_bytes(proc: Path) -> int:
    try:
        import psutil
    except ImportError as error:
        raise SourceUnavailableError(NO_PSUTIL) from error
    psutil.PROCFS_PATH = str(proc)
    return int(psutil.virtual_memory().total)


def _nics(classes: Path) -> dict[str, dict[str, str]]:
    """The interfaces that have a device behind them, and the RDMA devices, by their names."""
    values = {}
    for kind, names in (("net", NIC_VALUES), ("infiniband", RDMA_VALUES)):
        for path in sorted((classes / kind).glob("*/device")):
            driver = path / "driver"
            name = Path(os.readlink(driver)).name if driver.is_symlink() else ""  # noqa: PTH115 - Python 3.8's
            facts = {"driver": name, **_single_values(path.parent, names)}
            values[path.parent.name] = {key: fact for key, fact in facts.items() if fact not in ("", UNKNOWN)}
    return _some(values, f"no interface with a device of its own under {classes / 'net'}")


def _limits(cgroup: Path) -> dict[str, str]:
    limits = {name: resource.getrlimit(getattr(resource, name))[0] for name in LIMITS}
    words = {
        name: "unlimited" if soft == resource.RLIM_INFINITY else str(soft) for name, soft in limits.items()
    }
    return {**words, "cpus": str(len(os.sched_getaffinity(0))), **_single_values(cgroup, CGROUP_LIMITS)}


def _system() -> str:
    release = getattr(platform, "freedesktop_os_release", None)
    if release is None:
        raise SourceUnavailableError(f"Python {platform.python_version()} does not say it")
    return str(release()["PRETTY_NAME"])


def _packages() -> Iterator[tuple[str, str]]:
    for each in metadata.distributions():
        # the headers alone: to parse the description, often a whole page, costs the host ten times as much
        headers = HeaderParser().parsestr(_description(each).partition("\n\n")[0])
        if headers["Name"]:
            yield str(headers["Name"]), str(headers["Version"])


def _description(package: metadata.Distribution) -> str:
    """Core metadata (PyPA's specification): of a wheel, of an egg, of an egg that is one file."""
    return package.read_text("METADATA") or package.read_text("PKG-INFO") or package.read_text("") or ""


def _system_packages() -> dict[str, str]:
    problems = []
    for command in PACKAGE_LISTS:
        try:
            lines = (line.partition("\t") for line in _output(*command).splitlines())
            return {name: version for name, _, version in sorted(lines) if name and version}
        except SourceUnavailableError as error:
            problems.append(str(error))
    raise SourceUnavailableError("; ".join(problems))


def _output(*command: str) -> str:
    """What a tool prints in English; SourceUnavailableError where it is not there or fails."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, check=True, timeout=COMMAND_LIMIT_S
        )
    except FileNotFoundError as error:
        raise SourceUnavailableError(f"there is no {command[0]}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise SourceUnavailableError(f"{command[0]}: {type(error).__name__}: {error}") from error
    return done.stdout.decode("utf-8", "replace")


def _single_values(folder: Path, names: Sequence[str], prefix: str = "") -> dict[str, str]:
    """What stands in files of one value each; those that are not there, or do not answer, are missing."""
    values = {}
    for name in names:
        try:
            values[f"{prefix}{name}"] = (folder / name).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:  # an interface that is down has no speed, a virtual machine no governor
            continue
    return values


def _some(values: dict[str, Any], reason: str) -> dict[str, Any]:
    if not values:
        raise SourceUnavailableError(reason)
    return values
