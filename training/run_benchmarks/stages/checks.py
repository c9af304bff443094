"""The checks that every host passes before anything is launched: each a small function of one host."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from run_benchmarks.frameworks import open_framework
from run_benchmarks.names import LABEL_RUN, WORK_FOLDER
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.runtimes.base import Runtime, UnitState
from run_benchmarks.stages.network import interface_to, peer_of
from run_benchmarks.transports.base import Transport
from utils import manifest as manifests
from utils.errors import FlagPerfError

QUICK_S = 30.0
# Events of several nodes are put on one time line; half a second is far more than NTP leaves.
CLOCK_WARNING_S = 0.5
CLOCK_ERROR_S = 30.0
LISTENING = "0A"


class Status(str, Enum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Check:
    """One check of one host. `remedy` says what to do where it is not OK."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


def with_status(checks: Mapping[str, Sequence[Check]], *statuses: Status) -> list[tuple[str, Check]]:
    """Those of the hosts' checks that ended so, each with its host."""
    return [
        (host, check) for host, of_host in checks.items() for check in of_host if check.status in statuses
    ]


@dataclass(frozen=True)
class Place:
    """A host's place in a case: its node rank, and the addresses of all the case's nodes by rank."""

    case: CasePlan
    rank: int
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class HostUse:
    """One host and what the run wants of it."""

    transport: Transport
    places: tuple[Place, ...]

    @property
    def cases(self) -> list[CasePlan]:
        """The cases that run here."""
        return [place.case for place in self.places]


Checker = Callable[[Plan, Runtime, HostUse], Awaitable[Check]]


def _ok(name: str, detail: str) -> Check:
    return Check(name, Status.OK, detail)


def _error(name: str, detail: str, remedy: str) -> Check:
    return Check(name, Status.ERROR, detail, remedy)


async def engine(plan: Plan, runtime: Runtime, use: HostUse) -> Check:
    """The container engine (or the interpreter, for plain processes) answers."""
    try:
        return _ok("engine", await runtime.version(use.transport))
    except FlagPerfError as error:
        return _error("engine", error.message, error.remedy)


async def deploy_path(plan: Plan, runtime: Runtime, use: HostUse) -> Check:
    """FlagPerf's own folder can be made and written."""
    folder = f"{plan.run.flagperf_path_host.rstrip('/')}/{WORK_FOLDER}"
    script = 'mkdir -p "$0/runs" && [ -w "$0/runs" ]'
    done = await use.transport.run(["sh", "-c", script, folder], timeout=QUICK_S)
    if done.ok:
        return _ok("deploy path", folder)
    return _error(
        "deploy path",
        f"FLAGPERF_PATH_HOST = {plan.run.flagperf_path_host}: {done.last_lines(1) or 'not writable'}",
        "name a folder in test_conf.py that the ssh user may create and write on every host",
    )


# $0 may not be there yet: what counts is the file system that it will be on.
FREE_DISK = 'd=$0; while [ ! -d "$d" ]; do d=$(dirname "$d"); done; exec df -Pk "$d"'


async def disk(plan: Plan, runtime: Runtime, use: HostUse) -> Check:
    """There is room for logs and images."""
    folder = plan.run.flagperf_path_host
    done = await use.transport.run(["sh", "-c", FREE_DISK, folder], timeout=QUICK_S)
    fields = done.stdout.strip().splitlines()[-1].split() if done.ok and done.stdout.strip() else []
    if len(fields) < 4 or not fields[3].isdigit():
        return Check("free disk", Status.WARNING, done.last_lines(1), "df gave no answer; look yourself")
    free = int(fields[3]) / 2**20
    if free < plan.run.min_free_disk_gib:
        need = plan.run.min_free_disk_gib
        return _error(
            "free disk", f"{free:.1f} GiB at {folder}", f"free {need:g} GiB, or set MIN_FREE_DISK_GIB"
        )
    return _ok("free disk", f"{free:.0f} GiB")


async def data(plan: Plan, runtime: Runtime, use: HostUse) -> Check:
    """Every case's data directory exists; where it has a manifest, each file has the size noted there."""
    details = []
    for folder in sorted({case.settings.data_dir_host for case in use.cases}):
        if not (await use.transport.run(["test", "-d", folder], timeout=QUICK_S)).ok:
            return _error(
                "data",
                f"{folder} does not exist",
                "put the data there on this host, or correct the case's data dir",
            )
        altered, what = await _altered_files(use.transport, folder)
        if altered:
            return _error(
                "data", f"{folder}: {altered}", "prepare the data again, or copy it from a good host"
            )
        details.append(what)
    return _ok("data", "; ".join(details))


async def _altered_files(transport: Transport, folder: str) -> tuple[str, str]:
    """What differs from the manifest (empty: nothing), and what was checked."""
    text = await transport.run(["cat", f"{folder}/{manifests.MANIFEST_NAME}"], timeout=QUICK_S)
    if not text.ok:
        return "", f"{folder} (no manifest)"
    manifest = manifests.parse(text.stdout, where=f"{transport.host}:{folder}/{manifests.MANIFEST_NAME}")
    listed = await transport.run(manifests.listing_command(manifest, folder), timeout=300)
    wrong = [
        f"{problem.name}: {problem.message}"
        for problem in manifests.compare_listing(manifest, listed.stdout, folder)
    ]
    more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
    return "; ".join(wrong[:5]) + more, f"{folder} ({len(manifest.files)} files as in the manifest)"


async def devices(plan: Plan, runtime: Runtime, use: HostUse) -> Check:
    """There are as many devices as the cases want, and of the kind that their configs name.

    A host that several vendors' cases use is asked for each vendor's devices; the worst answer counts.
    """
    of_vendor: dict[str, list[CasePlan]] = {}
    for case in use.cases:
        of_vendor.setdefault(case.vendor.name, []).append(case)
    if not of_vendor:
        return _ok("devices", "no case runs here")
    checks = [await _devices_of(cases, use.transport) for cases in of_vendor.values()]
    severity = list(Status)
    worst = max(checks, key=lambda check: severity.index(check.status))
    if worst.status is not Status.OK:
        return worst
    return _ok("devices", ", ".join(check.detail for check in checks))


async def _devices_of(cases: list[CasePlan], transport: Transport) -> Check:
    """Whether the host has the devices that the cases of one vendor want."""
    vendor = cases[0].vendor
    if not vendor.list_devices_command:
        detail = f"not checked: nothing says how to list those of {vendor.name}"
        remedy = f"see yourself that they are there, or write {vendor.folder / 'vendor.py'} (CONTRIBUTING.md)"
        return Check("devices", Status.WARNING, detail, remedy)
    done = await transport.run(vendor.list_devices_command, timeout=60)
    if not done.ok:
        remedy = f"check the driver of {vendor.name} on this host, and the case's vendor in test_conf.py"
        return _error("devices", f"{' '.join(done.argv)}: {done.last_lines(2)}", remedy)
    try:
        devices = vendor.parse_devices(done.stdout)
    except Exception as error:  # the vendor's own code: it may raise anything, and must not end the run
        reason = f"{vendor.name}'s parse_device_list: {type(error).__name__}: {error}"
        return _error("devices", reason, f"mend it in {vendor.folder}/vendor.py")
    need = max(case.settings.nproc for case in cases)
    if len(devices) < need:
        return _error(
            "devices", f"{len(devices)}, but nproc is {need}", "lower nproc, or run on a host with more"
        )
    for case in cases:
        chip = case.chip
        names = chip.device_names if chip else ()
        other = [name for name in devices if names and not any(part in name for part in names)]
        if chip and other:
            remedy = (
                f"use the config of the chip that is there, or correct the chip in {case.files.config_file}"
            )
            return _error("devices", f"{other[0]} is not a {chip.name}", remedy)
    kinds = ", ".join(sorted(set(devices)))
    return _ok("devices", f"{len(devices)} x {kinds}")


async def clock(plan: Plan, runtime: Runtime, use: HostUse) -> Check:
    """The host's clock agrees with the controller's."""
    before = time.time()
    done = await use.transport.run(["date", "+%s.%N"], timeout=QUICK_S)
    after = time.time()
    try:
        offset = float(done.stdout) - (before + after) / 2
    except ValueError:
        return Check("clock", Status.WARNING, done.last_lines(1), "date gave no answer; look yourself")
    detail = f"{offset:+.3f} s (+- {(after - before) / 2:.3f} s)"
    if abs(offset) > CLOCK_ERROR_S:
        return _error("clock", detail, "set the host's clock (NTP)")
    if abs(offset) > CLOCK_WARNING_S + (after - before) / 2:
        return Check("clock", Status.WARNING, detail, "start NTP: events of several hosts cannot be compared")
    return _ok("clock", detail)


async def master_port(plan: Plan, runtime: Runtime, use: HostUse) -> Check:
    """Nothing listens on MASTER_PORT of a host that is node 0 of a case."""
    port = plan.cluster.master_port
    if not any(place.rank == 0 for place in use.places):
        return _ok("master port", "not needed")
    done = await use.transport.run(["cat", "/proc/net/tcp", "/proc/net/tcp6"], timeout=QUICK_S)
    taken = [line for line in done.stdout.splitlines() if _listens_on(line, port)]
    if taken:
        return _error("master port", f"{port} is in use", "set another MASTER_PORT in cluster_conf.py")
    return _ok("master port", str(port))


def _listens_on(line: str, port: int) -> bool:
    fields = line.split()
    return len(fields) > 3 and fields[1].endswith(f":{port:04X}") and fields[3] == LISTENING


async def leftovers(plan: Plan, runtime: Runtime, use: HostUse) -> Check:
    """No container of an earlier run is left, and no other run uses the host."""
    try:
        units = await runtime.list_units(use.transport)
    except FlagPerfError as error:
        return Check("leftovers", Status.WARNING, error.message, error.remedy)
    runs = runs_of(units)
    if not runs:
        return _ok("leftovers", "none")
    running = any(unit.running for unit in units if unit.labels.get(LABEL_RUN))
    detail = f"{'running' if running else 'ended'} units of {', '.join(runs)}"
    remedy = f"if that run is over: python3 run_benchmarks/run.py cleanup {runs[0]}"
    if running:
        remedy += "; if it is not, both runs share this host and their figures are not to be trusted"
    return Check("leftovers", Status.WARNING, detail, remedy)


def runs_of(units: Iterable[UnitState]) -> list[str]:
    """The runs that units belong to; a container made by hand from one of our images belongs to none."""
    return sorted({unit.labels[LABEL_RUN] for unit in units if unit.labels.get(LABEL_RUN)})


# What the monitor needs beside the standard library (utils/monitors/requirements.txt).
MONITOR_MODULE = "psutil"


async def software(plan: Plan, runtime: Runtime, use: HostUse) -> Check:
    """Without containers: the interpreter has what the frameworks and the monitor need."""
    if plan.run.uses_images:
        return _ok("software", "in the image")
    names = sorted({MONITOR_MODULE, *(name for case in use.cases for name in _required_modules(case))})
    code = "import importlib.util,sys;print(*[n for n in sys.argv[1:] if not importlib.util.find_spec(n)])"
    done = await use.transport.run([plan.run.process_python, "-c", code, *names], timeout=QUICK_S)
    missing = done.stdout.split()
    if not done.ok or missing:
        detail = f"{plan.run.process_python} lacks {', '.join(missing)}" if missing else done.last_lines(1)
        return _error("software", detail, "install it there, or name another interpreter with PROCESS_PYTHON")
    return _ok("software", f"{plan.run.process_python} has {', '.join(names)}")


def _required_modules(case: CasePlan) -> tuple[str, ...]:
    return open_framework(case.settings.framework).required_modules


async def peers(plan: Plan, runtime: Runtime, use: HostUse) -> Check:
    """In a case of several nodes, the host's peer is known to it, and as another host than itself.

    Raises:
        FlagPerfError: it is not.
    """
    several = [place for place in use.places if len(place.addresses) > 1]
    wanted = sorted({peer_of(place.addresses, place.rank) for place in several})
    for peer in wanted:
        await interface_to(use.transport, peer)
    return _ok("peers", f"{', '.join(wanted)} known" if wanted else "not needed")


ALL_CHECKS: tuple[Checker, ...] = (
    engine,
    deploy_path,
    disk,
    data,
    devices,
    clock,
    master_port,
    leftovers,
    software,
    peers,
)
