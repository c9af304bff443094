"""`run.py cleanup`: remove what a run left behind on hosts that were out of reach when it ended."""

from __future__ import annotations

from collections.abc import Mapping

from run_benchmarks.images.pip_handover import left_pip_folders_argv
from run_benchmarks.names import WORK_FOLDER
from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.stages.checks import runs_of
from run_benchmarks.stages.fan_out import on_all
from run_benchmarks.transports import open_transport
from run_benchmarks.transports.base import checked
from utils.errors import FlagPerfError

Removed = Mapping[str, tuple[str, ...] | FlagPerfError]


async def clean_up_run(plan: Plan, run_uid: str) -> Removed:
    """Remove the units of one run from every host: host -> their names, or why it failed.

    With them go the pip settings of its builds, which may hold credentials. Logs that were never collected stay.
    """
    runtime = open_runtime(plan.run)
    work = f"{plan.run.flagperf_path_host.rstrip('/')}/{WORK_FOLDER}"

    async def clean(host: str) -> tuple[str, ...]:
        transport = open_transport(host, plan.cluster)
        try:
            removed = await runtime.remove_all(transport, run_uid, grace_s=5)
            await checked(transport, left_pip_folders_argv(work, run_uid), timeout=60)
            return removed
        finally:
            await transport.close()

    return await on_all(plan.cluster.hosts, clean)


async def list_runs(plan: Plan) -> Removed:
    """Host -> the runs that have units there."""
    runtime = open_runtime(plan.run)

    async def runs(host: str) -> tuple[str, ...]:
        transport = open_transport(host, plan.cluster)
        try:
            return tuple(runs_of(await runtime.list_units(transport)))
        finally:
            await transport.close()

    return await on_all(plan.cluster.hosts, runs)
