"""What is done on all nodes of a job at the moment when it is ended: one step that waits for Slurm's SIGTERM."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from run_benchmarks.hosts.slurm.record import Job
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.srun import srun
from utils.errors import FlagPerfError

# The shell is the step's own process, and outlives the signal that all processes of the job get; SIGKILL follows after
# KillWait, which is 30 s by default. The script comes by standard input, and so stands in no list of processes. What
# the shell waits with may have been begun anew after the signal: left alone it would hold up the job's end by a minute.
WAIT = """script=$(cat); trap 'trap "" TERM; kill $!; eval "$script"; exit 0' TERM
while :; do sleep 3600 >/dev/null 2>&1 & wait; done"""


class LastAct:
    """A script that waits on every node of a job. A controller that is killed leaves it waiting."""

    def __init__(self, job: Job, script: str) -> None:
        self._step = asyncio.create_task(self._wait(job, script))

    async def close(self) -> None:
        """End the step, by which the script is executed."""
        self._step.cancel()
        await asyncio.gather(self._step, return_exceptions=True)

    async def _wait(self, job: Job, script: str) -> None:
        # of a search, which goes on without a node that fails, it stays on the others
        where = (f"--nodes={len(job.nodes)}", "--ntasks-per-node=1", "--no-kill")
        argv = srun(job.id, *where, "sh", "-c", WAIT)
        with suppress(FlagPerfError):
            await LocalTransport("slurm").run(argv, stdin=script.encode())
