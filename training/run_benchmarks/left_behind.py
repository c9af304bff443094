"""What runs left behind on hosts that were out of reach when they ended: found again, and removed."""

from __future__ import annotations

from collections.abc import Mapping

from run_benchmarks.images.pip_handover import left_pip_folders_argv
from run_benchmarks.names import WORK_FOLDER
from run_benchmarks.plan.records import ClusterSettings, RunSettings
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.stages.checks import runs_of
from run_benchmarks.stages.fan_out import on_all
from run_benchmarks.transports import open_transport
from run_benchmarks.transports.base import checked
from utils.errors import FlagPerfError

NamesByHost = Mapping[str, tuple[str, ...] | FlagPerfError]


async def list_runs(cluster: ClusterSettings, run: RunSettings) -> NamesByHost:
    """Host -> the runs that have units there."""
    runtime = open_runtime(run)

    async def runs(host: str) -> tuple[str, ...]:
        transport = open_transport(host, cluster)
        try:
            return tuple(runs_of(await runtime.list_units(transport)))
        finally:
            await transport.close()

    return await on_all(cluster.hosts, runs)


async def remove_run(cluster: ClusterSettings, run: RunSettings, run_uid: str) -> NamesByHost:
    """Remove the units of one run from every host: host -> their names, or why it failed.

    With them go the pip settings of its builds, which may hold credentials. Logs that were never collected stay.
    """
    runtime = open_runtime(run)
    work = f"{run.flagperf_path_host.rstrip('/')}/{WORK_FOLDER}"

    async def remove(host: str) -> tuple[str, ...]:
        transport = open_transport(host, cluster)
        try:
            removed = await runtime.remove_all(transport, run_uid, grace_s=5)
            await checked(transport, left_pip_folders_argv(work, run_uid), timeout=60)
            return removed
        finally:
            await transport.close()

    return await on_all(cluster.hosts, remove)
