"""The checks that every host passes before anything is launched: each a small function of one host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeVar

from run_benchmarks.commands import run_command
from run_benchmarks.frameworks import open_framework
from run_benchmarks.names import run_of, work_folder
from run_benchmarks.plan.case_files import DRIVER_SCRIPT
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.runtimes.base import Runtime, UnitState
from run_benchmarks.runtimes.process import OLDEST_PYTHON
from run_benchmarks.stages.clock import NoTimeError, read_clock
from run_benchmarks.stages.network import interface_to, peer_of
from run_benchmarks.stages.process_setup import SEE_S, in_setup, see_setup
from run_benchmarks.stages.readings import Readings
from run_benchmarks.stages.work_folder import SEE, in_work_folder
from run_benchmarks.transports.base import Completed, Transport
from run_benchmarks.unforeseen import contained
from utils.errors import FlagPerfError
from utils.numbers import whole
from utils.records import FailureClass
from utils.text_files import shortened

QUICK_S = 30.0
# Events of several nodes are put on one time line; half a second is far more than NTP leaves.
CLOCK_WARNING_S = 0.5
CLOCK_ERROR_S = 30.0
LONGEST_TEXT = 2**12  # characters of what a check says: some of it a host has printed
MOST_NAMED = 20
RUNS_CAN_BE_WRITTEN = 'mkdir -p "$0/runs"; [ -w "$0/runs" ]'


class Status(str, Enum):
    """How a check ended."""

    OK = "ok"
    SKIPPED = "skipped"  # nothing asks for it
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Check:
    """One check of one host. `remedy` says what to do where it did not pass.

    facts: what it measured on its way, for the results: of the clock its offset, of data their digests. Checks that
    say the same are the same. failure_class: of a round that ends by it, where the check says more than its name.
    """

    name: str
    status: Status
    detail: str
    remedy: str = ""
    facts: Mapping[str, float | str] = field(default_factory=dict, compare=False)
    failure_class: FailureClass | None = field(default=None, compare=False)


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
    """One host and what the run wants of it; `facts` takes what a check measures, whether it passes or not.

    is_only_seen: whether a check makes no folder that a run will need, but sees whether it could.
    readings: shared with the hosts that are checked at the same time.
    """

    transport: Transport
    places: tuple[Place, ...]
    facts: dict[str, float | str] = field(default_factory=dict)
    is_only_seen: bool = False
    readings: Readings = field(default_factory=Readings)

    @property
    def cases(self) -> list[CasePlan]:
        """The cases that run here."""
        return [place.case for place in self.places]


class DoubtError(FlagPerfError):
    """Something that deserves a word but forbids nothing."""


class SkippedError(FlagPerfError):
    """Why a check that somebody may expect could not be made."""


Use = TypeVar("Use", bound=HostUse)

# Gives the detail of what is well, or None where nothing asks for the check; raises DoubtError, or any other
# FlagPerfError where a run is forbidden.
Checker = Callable[[Plan, Runtime, Use], Awaitable[str | None]]


async def outcome(checker: Checker[Use], plan: Plan, runtime: Runtime, use: Use) -> Check:
    """How a check ends; its name is the function's. What nobody foresaw is an error of this host alone."""
    name = checker.__name__.replace("_", " ")
    own = replace(use, facts={})

    def short(text: str) -> str:
        # hidden first: what is left of a secret that is cut nobody would know any more
        return shortened(plan.secrets.hide(text), LONGEST_TEXT)

    try:
        detail = await checker(plan, runtime, own)
        status = Status.SKIPPED if detail is None else Status.OK
        return Check(name, status, short(detail or ""), facts=own.facts)
    except Exception as raised:
        error = contained(raised)
        status = next((_STATUS[kind] for kind in _STATUS if isinstance(error, kind)), Status.ERROR)
        message, remedy = map(short, (error.message, error.remedy))
        return Check(name, status, message, remedy, own.facts, error.failure_class)


_STATUS = {DoubtError: Status.WARNING, SkippedError: Status.SKIPPED}


async def engine(plan: Plan, runtime: Runtime, use: HostUse) -> str:
    """The container engine (or the interpreter, for plain processes) answers."""
    return await runtime.version(use.transport)


async def deploy_path(plan: Plan, runtime: Runtime, use: HostUse) -> str:
    """FlagPerf's own folder can be made and written, by this user alone."""
    folder = work_folder(plan.run)
    try:
        if use.is_only_seen:
            await in_work_folder(use.transport, folder, "", timeout=QUICK_S, enter=SEE)
        else:
            await in_work_folder(use.transport, folder, RUNS_CAN_BE_WRITTEN, timeout=QUICK_S)
    except FlagPerfError as error:
        message = f"FLAGPERF_PATH_HOST = {plan.run.flagperf_path_host}: {error.message}"
        raise FlagPerfError(message, remedy=error.remedy) from error
    return folder


# $0 may not be there yet: what counts is the file system that it will be on.
FREE_DISK = 'd=$0; while [ ! -d "$d" ]; do d=$(dirname "$d"); done; exec df -Pk "$d"'


async def free_disk(plan: Plan, runtime: Runtime, use: HostUse) -> str:
    """There is room for logs and images."""
    folder = plan.run.flagperf_path_host
    free = free_gib(await use.transport.run(["sh", "-c", FREE_DISK, folder], timeout=QUICK_S))
    use.facts["free_gib"] = round(free, 1)
    if free < plan.run.min_free_disk_gib:
        least = f"MIN_FREE_DISK_GIB ({plan.run.min_free_disk_gib:,.0f} GiB)"
        remedy = f"free more on {use.transport.host}, or lower {least}"
        raise FlagPerfError(f"only {free:,.1f} GiB at {folder}", remedy=remedy)
    return f"{free:.0f} GiB"


def free_gib(done: Completed) -> float:
    """What `df -Pk` says is free; DoubtError where it says nothing."""
    fields = done.stdout.strip().splitlines()[-1].split() if done.ok and done.stdout.strip() else []
    blocks = whole(fields[3]) if len(fields) > 3 else None
    if blocks is None:
        raise DoubtError(done.last_lines(1), remedy="df gave no answer; look yourself")
    return blocks / 2**20


async def clock(plan: Plan, runtime: Runtime, use: HostUse) -> str:
    """The host's clock agrees with the controller's."""
    try:
        reading = await read_clock(use.transport, QUICK_S)
    except NoTimeError as error:
        raise DoubtError(error.message, remedy=error.remedy) from error
    use.facts.update(offset_s=reading.offset_s, uncertainty_s=reading.uncertainty_s)
    host = use.transport.host
    if abs(reading.offset_s) > CLOCK_ERROR_S:
        raise FlagPerfError(
            str(reading), remedy=f"set the clock of {host} by NTP: `timedatectl` there says what does it"
        )
    if abs(reading.offset_s) > CLOCK_WARNING_S + reading.uncertainty_s:
        remedy = f"start NTP on {host} (`timedatectl`): events of several hosts cannot be compared"
        raise DoubtError(str(reading), remedy=remedy)
    return str(reading)


async def leftovers(plan: Plan, runtime: Runtime, use: HostUse) -> str:
    """No container of an earlier run is left, and no other run uses the host."""
    try:
        units = await runtime.list_units(use.transport)
    except FlagPerfError as error:
        raise DoubtError(error.message, remedy=error.remedy) from error
    runs = runs_of(units)
    if not runs:
        return "none"
    running = any(unit.running for unit in units if run_of(unit.labels))
    detail = f"{'running' if running else 'ended'} units of {named(runs)}"
    over = "of each run that is over: "
    if running:
        over = "runs that share a host have figures that are not to be trusted: wait until they end; "
        over += "cleanup ends what runs, and is for runs alone that are over: "
    # at the end, so that they can be copied
    commands = "; ".join(run_command("cleanup", uid, *plan.options) for uid in runs[:MOST_NAMED])
    raise DoubtError(detail, remedy=f"{over}{commands}")


def runs_of(units: Iterable[UnitState]) -> list[str]:
    """The runs that units belong to; a container made by hand from one of our images belongs to none."""
    return sorted({run_of(unit.labels) for unit in units} - {""})


def named(runs: Collection[str]) -> str:
    """Runs as a text: all, or of too many the first."""
    more = len(runs) - MOST_NAMED
    return ", ".join(sorted(runs)[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


# What the shared driver is written for; scripts of cases' own run on what the units themselves need.
DRIVER_PYTHON = (3, 10)
LACKING = (
    "import importlib.util,sys;print(*[n for n in sys.argv[1:] if not importlib.util.find_spec(n)],"
    "*['Python %d.%d (it is %d.%d)'%({oldest}+sys.version_info[:2])]*(sys.version_info<{oldest}),sep='\\n')"
)

# What the monitor needs beside the standard library (utils/monitors/requirements.txt).
MONITOR_MODULE = "psutil"


async def software(plan: Plan, runtime: Runtime, use: HostUse) -> str | None:
    """Without containers: the interpreter has what the frameworks and the monitor need."""
    if plan.run.uses_images:
        return None
    names = sorted({MONITOR_MODULE, *(name for case in use.cases for name in _required_modules(case))})
    oldest = DRIVER_PYTHON if any(case.files.script == DRIVER_SCRIPT for case in use.cases) else OLDEST_PYTHON
    await see_setup(plan.run, use.transport)
    program = (plan.run.process_python, "-c", LACKING.format(oldest=oldest), *names)
    done = await use.transport.run((*in_setup(plan.run), *program), timeout=QUICK_S + SEE_S)
    missing = list(filter(None, done.stdout.splitlines()))
    if not done.ok or missing:
        detail = f"{plan.run.process_python} lacks {', '.join(missing)}" if missing else done.last_lines(1)
        remedy = "install it there, or name another interpreter with PROCESS_PYTHON"
        raise FlagPerfError(detail, remedy=remedy)
    return f"{plan.run.process_python} has {', '.join(names)}"


def _required_modules(case: CasePlan) -> tuple[str, ...]:
    framework = open_framework(case.settings.framework)
    plugin = case.vendor.plugin.get(framework.name)
    return (*framework.required_modules, *((plugin,) if plugin else ()))


async def peers(plan: Plan, runtime: Runtime, use: HostUse) -> str | None:
    """In a case of several nodes, the host's peer is known to it, and as another host than itself."""
    several = [place for place in use.places if len(place.addresses) > 1]
    wanted = sorted({peer_of(place.addresses, place.rank) for place in several})
    for peer in wanted:
        await interface_to(use.transport, peer)
    return f"{', '.join(wanted)} known" if wanted else None
