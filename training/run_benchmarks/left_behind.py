"""What runs left behind on hosts: what was out of reach when they ended, and what nobody may need any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TypeVar

from run_benchmarks.collected import collected
from run_benchmarks.hosts.kubernetes.allocator import KubernetesHosts
from run_benchmarks.hosts.slurm.holder import job_name
from run_benchmarks.hosts.slurm.jobs import Slurm
from run_benchmarks.hosts.slurm.record import RUNNING
from run_benchmarks.hosts.slurm.visit import visited
from run_benchmarks.images.pip_handover import run_of_pip_folder
from run_benchmarks.images.unfinished import end_builds, unfinished_builds
from run_benchmarks.journal import is_held, kept_folders, nodes_of_run
from run_benchmarks.names import (
    JOURNAL,
    LABEL_RUN,
    RUN_UID,
    RunId,
    host_paths,
    run_of,
    run_of_copy,
    work_folder,
)
from run_benchmarks.plan.kubernetes import KubernetesSettings
from run_benchmarks.plan.records import ClusterSettings, RunSettings
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.results.controller import lost_controller
from run_benchmarks.results.find import has_uid
from run_benchmarks.results.folder import RunFolder, open_folder
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.runtimes.base import UnitState
from run_benchmarks.stages.fan_out import errors_of, on_all
from run_benchmarks.stages.run_folder import left_folders_argv, remove_argv
from run_benchmarks.stages.work_folder import ENTER_OWN
from run_benchmarks.transports import open_transport
from run_benchmarks.transports.base import Transport, checked
from run_benchmarks.transports.kubectl.client import Kubectl
from run_benchmarks.transports.srun import SrunTransport
from run_benchmarks.unused import Held, Item, Needs, held_by, remove_items
from utils.errors import FlagPerfError

T = TypeVar("T")
QUICK_S, REMOVING_S = 60.0, 600.0
SLURM = "Slurm"  # in the place of a host
# $0: the work folder; $1: a folder in it, or "."; none of them need be there.
LIST_FOLDERS = f'[ ! -d "$0/$1" ] || {{ {ENTER_OWN}exec find "$1" -mindepth 1 -maxdepth 1 -type d; }}'


@dataclass(frozen=True)
class Leftovers:
    """What one run has on one host.

    pip_folders: with the pip settings of its builds. copies: folders with a file on its way to many hosts. logs: the
    folder of those that were not collected, or empty.
    """

    units: tuple[UnitState, ...] = ()
    pip_folders: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    logs: str = ""

    @property
    def running(self) -> bool:
        """Whether a unit of it still runs."""
        return any(unit.running for unit in self.units)

    def __str__(self) -> str:
        builds = [f"pip settings of a build in {folder}" for folder in self.pip_folders]
        copies = [f"a copy of an image or the code in {folder}" for folder in self.copies]
        logs = [f"logs not collected so far, in {self.logs}"] if self.logs else []
        return ", ".join((*map(str, self.units), *builds, *copies, *logs))


@dataclass(frozen=True)
class Removed:
    """What was removed of a run from a host. logs: the folder of those that are nowhere else, and stay; or empty."""

    names: tuple[str, ...]
    logs: str = ""


@dataclass(frozen=True)
class Survey:
    """What hosts hold of any run: host -> run -> what it has there, or why the host did not answer.

    places: where was looked on each of them. kept: host -> what else it keeps, and why, or empty where it may go.
    """

    hosts: Mapping[str, Mapping[str, Leftovers] | FlagPerfError]
    places: str
    kept: Mapping[str, Mapping[Item, str]] = field(default_factory=dict)

    @property
    def unreached(self) -> dict[str, FlagPerfError]:
        """Those hosts that did not answer."""
        return {name: seen for name, seen in self.hosts.items() if isinstance(seen, FlagPerfError)}

    def runs(self) -> list[str]:
        """The uids of all runs that left something."""
        return sorted({uid for seen in self.hosts.values() if isinstance(seen, Mapping) for uid in seen})

    def of_run(self, uid: str) -> dict[str, Leftovers]:
        """What a run has, by those hosts that answered; empty where it has nothing."""
        return {
            host: seen.get(uid, Leftovers()) for host, seen in self.hosts.items() if isinstance(seen, Mapping)
        }


async def survey(cluster: ClusterSettings, run: RunSettings, needs: Needs | None = None) -> Survey:
    """Look on every host; where `needs` are given, also at what nobody may need any more."""
    if cluster.kubernetes:
        return Survey({cluster.scheduler: await _pods(cluster.kubernetes)}, "pods of runs in the namespace")
    runtime, work = open_runtime(run), work_folder(run)
    places = f"{runtime.units_seen}; builds of images; {work}/pip; {work}/runs; {work}/copy-*"
    if cluster.slurm and not cluster.slurm.inside:
        return Survey(
            {SLURM: await _jobs()}, f"this user's jobs in the queue; on the nodes of a run {places}"
        )
    held: dict[str, Held] = {}

    async def look(transport: Transport) -> dict[str, Leftovers]:
        with runtime.cleaning_up(transport.host):
            units = (*await runtime.list_units(transport), *await unfinished_builds(transport, work))
        pip_folders, copies, logs = [await _folders(transport, work, name) for name in ("pip", ".", "runs")]
        if needs:
            held[transport.host] = await held_by(transport, run, units)
        return _by_run(units, pip_folders, copies, logs)

    hosts = await _on_hosts(cluster, look)
    units = [unit for of_host in held.values() for unit in of_host.units]
    kept = {
        host: {item: needs.keeps(item, of_host, units) for item in of_host.items}
        for host, of_host in held.items()
        if needs
    }
    return Survey(hosts, places, kept)


async def remove_run(
    cluster: ClusterSettings, run: RunSettings, uid: str
) -> Mapping[str, Removed | FlagPerfError]:
    """Remove the units of one run from every host: host -> what there was, or why it failed.

    With them go the pip settings of its builds, which may hold credentials, copies of files, and logs that are in its
    result folder. Other logs stay, and all where nobody can tell which these are.
    """
    if cluster.kubernetes:
        left = (await _pods(cluster.kubernetes)).get(uid, Leftovers())
        by_label = replace(cluster.kubernetes, job="")  # a job by name may be another run's by now
        ended = await on_all([cluster.scheduler], lambda _: KubernetesHosts(by_label, uid).close())
        return {cluster.scheduler: Removed(tuple(unit.name for unit in left.units)), **errors_of(ended)}
    runtime, paths = open_runtime(run), host_paths(run, RunId(uid.partition("-")[0], uid, ""), "")
    folder = _results_of(uid, run.log_path)
    gap = folder.journal_gap if folder else None

    async def remove(transport: Transport) -> Removed:
        removed = await runtime.remove_all(transport, uid, grace_s=5)
        await checked(transport, left_folders_argv(paths.work, uid), timeout=QUICK_S)
        if folder and not gap:
            names = collected(folder.path, transport.host, kept_folders(folder.journal))
            spares = [f"{paths.logs}/{name}" for name in names]
            await checked(transport, remove_argv(paths, spares), timeout=REMOVING_S)
        runs = await _folders(transport, paths.work, "runs")
        removed += await end_builds(transport, paths.work, uid)
        return Removed(removed, paths.run if paths.run in runs else "")

    if cluster.slurm and not cluster.slurm.inside:
        on_hosts = await _remove_by_slurm(cluster.slurm, uid, folder, remove)
    else:
        on_hosts = await _on_hosts(cluster, remove)
    return {**on_hosts, gap.where: gap} if gap else on_hosts


async def _remove_by_slurm(
    settings: SlurmSettings,
    uid: str,
    folder: RunFolder | None,
    remove: Callable[[Transport], Awaitable[Removed]],
) -> dict[str, Removed | FlagPerfError]:
    """Cancel the run's jobs, and remove what it left on the nodes that its journal names."""
    left = (await _jobs()).get(uid, Leftovers())
    ended = await on_all([SLURM], lambda _: Slurm().end(job_name(uid)))
    names = tuple(unit.name for unit in left.units)
    removed: dict[str, Removed | FlagPerfError] = {SLURM: Removed(names), **errors_of(ended)}
    if folder is None:
        message, remedy = "not known, as its results are not here", "name where they are with --log-path"
        return removed | {"nodes of the run": FlagPerfError(message, remedy=remedy)}
    nodes, wrong = nodes_of_run(folder.journal, str(folder.path / JOURNAL))
    async with visited(Slurm(), settings, uid, nodes, SrunTransport) as hosts:

        async def visit(node: str) -> Removed:
            host = hosts[node]
            if isinstance(host, FlagPerfError):
                raise host
            return await remove(host.transport)

        return removed | wrong | await on_all(list(hosts), visit)


def _results_of(uid: str, log_path: Path) -> RunFolder | None:
    """The result folder of a run, if it is on this machine."""
    folder = log_path / uid.partition("-")[0]
    with suppress(FlagPerfError):
        return open_folder(folder) if has_uid(folder, uid) else None
    return None


async def remove_unused(
    cluster: ClusterSettings, run: RunSettings, items: Mapping[str, Sequence[Item]]
) -> Mapping[str, list[str] | FlagPerfError]:
    """Remove items from their hosts: host -> those that stayed, as they were used meanwhile, or why it failed."""

    async def remove(transport: Transport) -> list[str]:
        of_host = items.get(transport.host, ())
        return await remove_items(transport, run, of_host) if of_host else []

    return await _on_hosts(cluster, remove)


def still_runs(uid: str, log_path: Path) -> bool | None:
    """Whether a run's controller lives, by the run's folder on this machine; None where that cannot be told."""
    folder = log_path / uid.partition("-")[0]
    try:
        return is_held(folder / JOURNAL) if has_uid(folder, uid) else None
    except FlagPerfError:
        return None


def fate_of(uid: str, log_path: Path) -> str:
    """What became of a run's controller, as a clause, by the run's folder on this machine."""
    alive = still_runs(uid, log_path)
    if alive is not False:
        return "its controller still runs" if alive else "whether its controller still runs is not known"
    folder = open_folder(log_path / uid.partition("-")[0])
    has_ended = any(entry.get("event") == "run_ended" for entry in folder.journal)
    how = f"`run.py status {folder.path.name}` says how to go on with it, or to end it with its logs"
    return "it has ended" if has_ended else f"{lost_controller(folder).fate}; {how}"


async def _jobs() -> dict[str, Leftovers]:
    """Run -> its jobs; what it had on their nodes ends with them."""
    return {
        uid: Leftovers(tuple(UnitState(job, {LABEL_RUN: uid}, now == RUNNING, now) for job, now in jobs))
        for name, jobs in (await Slurm().names(job_name("run"))).items()
        if RUN_UID.fullmatch(uid := name.removeprefix(job_name("")))
    }


async def _pods(settings: KubernetesSettings) -> dict[str, Leftovers]:
    """Run -> its pods."""
    units: dict[str, list[UnitState]] = {}
    for pod in await Kubectl(settings.namespace, settings.context).pods(LABEL_RUN):
        unit = UnitState(pod.name, pod.metadata.labels, pod.end is None)
        units.setdefault(run_of(unit.labels), []).append(unit)
    return {uid: Leftovers(tuple(of_run)) for uid, of_run in units.items() if uid}


async def _on_hosts(
    cluster: ClusterSettings, work: Callable[[Transport], Awaitable[T]]
) -> dict[str, T | FlagPerfError]:
    async def on_host(host: str) -> T:
        transport = open_transport(host, cluster)
        try:
            return await work(transport)
        finally:
            await transport.close()

    return await on_all(cluster.hosts, on_host)


async def _folders(transport: Transport, work: str, name: str) -> list[str]:
    listed = await checked(transport, ("sh", "-c", LIST_FOLDERS, work, name), timeout=QUICK_S)
    return sorted(str(PurePosixPath(work, line)) for line in listed.whole_stdout().splitlines())


def _by_run(
    units: Iterable[UnitState], pip_folders: list[str], work_folders: list[str], logs: list[str]
) -> dict[str, Leftovers]:
    units_of = _grouped(units, lambda unit: run_of(unit.labels))
    pip_of = _grouped(pip_folders, run_of_pip_folder)
    copies_of = _grouped(work_folders, run_of_copy)
    logs_of = {name: folder for folder in logs if RUN_UID.fullmatch(name := PurePosixPath(folder).name)}
    # what has no name of ours belongs to no run, and is left alone
    uids = sorted({*units_of, *pip_of, *copies_of, *logs_of} - {""})
    return {uid: Leftovers(units_of[uid], pip_of[uid], copies_of[uid], logs_of.get(uid, "")) for uid in uids}


def _grouped(items: Iterable[T], run: Callable[[T], str]) -> defaultdict[str, tuple[T, ...]]:
    groups: defaultdict[str, list[T]] = defaultdict(list)  # a host may list any number
    for item in items:
        groups[run(item)].append(item)
    return defaultdict(tuple, {name: tuple(of_run) for name, of_run in groups.items()})
