"""Nodes whose job has ended, for a moment more: to fetch the logs that lie there, and to remove what a run left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from run_benchmarks.hosts.base import Host, warn_of_stuck_jobs
from run_benchmarks.hosts.slurm.holder import HEAD, job_name, visit_argv
from run_benchmarks.hosts.slurm.jobs import Slurm
from run_benchmarks.hosts.slurm.record import RUNNING, Job, SlurmError
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.stages.fan_out import on_all, values_of
from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError

WAIT_S, STAY_S = 60.0, 900
LOOK_S, GROWTH = 0.25, 1.3  # all nodes of a large job look at once: the longer the wait so far, the rarer
# It ends by itself, should its controller die.
SCRIPT = f"""\
{HEAD}# Lets a run of FlagPerf's clean up after itself on this node.
exec sleep {STAY_S}
"""


@asynccontextmanager
async def visited(
    slurm: Slurm,
    settings: SlurmSettings,
    run: str,
    nodes: Sequence[str],
    opener: Callable[[str, str], Transport],
) -> AsyncIterator[Mapping[str, Host | FlagPerfError]]:
    """A small job on each of the nodes, so that one that is taken keeps no other waiting: node -> host, or why not.

    Args:
        run: its uid.
        opener: job ID, node -> the way to the node.
    """
    name = f"{job_name(run)}-clean-up"
    hosts: Mapping[str, Host | FlagPerfError] = {}
    try:
        jobs = await on_all(nodes, lambda node: _job_on(slurm, visit_argv(settings, name, node), node))
        hosts = {
            node: job if isinstance(job, FlagPerfError) else Host(node, node, opener(job, node))
            for node, job in jobs.items()
        }
        yield hosts
    finally:
        await on_all([*values_of(hosts).values()], lambda host: host.transport.close())
        if nodes:
            with warn_of_stuck_jobs():
                await slurm.end(name)


async def _job_on(slurm: Slurm, argv: Sequence[str], node: str) -> str:
    """A job that runs on the node; SlurmError where there will be none soon."""
    if await slurm.down((node,)):
        raise SlurmError("Slurm has it as down", where=node)
    job_id, until, pause_s = await slurm.submit(argv, SCRIPT), time.time() + WAIT_S, LOOK_S
    while True:
        job = await slurm.look(job_id)
        if job and job.state == RUNNING:
            return job_id
        if job is None or not job.is_live or _comes_after(job, until):
            reason = job.fields.get("Reason", job.state) if job else "no job"
            raise SlurmError(f"Slurm does not grant it within {WAIT_S:g} s ({reason})", where=node)
        await asyncio.sleep(pause_s)
        pause_s *= GROWTH


def _comes_after(job: Job, until: float) -> bool:
    """Whether a job that waits will start after a moment, as far as Slurm knows."""
    return max(time.time(), job.time("StartTime") or 0.0) > until
