"""Before anything is launched: would Slurm take the jobs that a plan asks for?"""

from __future__ import annotations

import re

from run_benchmarks.hosts.slurm.holder import sbatch_argv, script
from run_benchmarks.hosts.slurm.jobs import Slurm
from run_benchmarks.hosts.slurm.record import SlurmError
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.slurm import SlurmSettings, own_nodes
from run_benchmarks.run_log import LOGGER
from utils.errors import FlagPerfError
from utils.numbers import counted

# What is said of nodes that are down, drained or in use, too: a job of these is taken, and waits.
_MAY_PASS = re.compile(r"Request(ed)? node|Required node|Requested partition configuration", re.IGNORECASE)
_MISNAMED = "option '--"  # as getopt says that there is none of the name, or that it may be that of several
WHERE = "cluster_conf.py: HOSTS"


async def check_slurm(plan: Plan, settings: SlurmSettings, slurm: Slurm | None = None) -> None:
    """Ask Slurm, which allocates nothing for it.

    Raises:
        FlagPerfError: it refuses a job, there is no Slurm here, or run.py is in no job and was to be.
    """
    if settings.inside:
        check_own_job()
        return
    sizes = {case.settings.nnodes for case in plan.cases}
    for nodes in {max(sizes)} if settings.hold and sizes else sorted(sizes):
        await _check(slurm or Slurm(), settings, nodes)


def check_own_job() -> None:
    """FlagPerfError where run.py is in no job."""
    if not own_nodes():
        remedy = "start it by `salloc --nodes=2 ...` or in a batch script, or write HOSTS = slurm(...)"
        message = '"slurm" stands for the job that run.py is in, and it is in none (SLURM_JOB_ID is not set)'
        raise FlagPerfError(message, where=WHERE, remedy=remedy)


async def _check(slurm: Slurm, settings: SlurmSettings, nodes: int) -> None:
    try:
        said = await slurm.test(
            (*sbatch_argv(settings, "flagperf-test", nodes), "--test-only"), script(settings)
        )
    except SlurmError as error:
        message = f"a job of {counted(nodes, 'node')}: {error.message}"
        if not _MAY_PASS.search(error.message):
            shown = "`sinfo` shows partitions, nodes and features"
            if _MISNAMED in error.message:
                shown = "`sbatch --help` shows its options, docs/slurm.md the settings beside them"
            remedy = error.remedy or f"correct slurm(...); {shown}"
            raise FlagPerfError(message, where=WHERE, remedy=remedy) from error
        otherwise = f"; if not: {error.remedy}" if error.remedy else ""
        LOGGER.warning(f"{message}; it is asked for all the same, as that may be so just now{otherwise}")
        return
    LOGGER.debug(said)
