"""The srun transport: commands on a node of a Slurm job, in steps of the job that overlap each other."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from run_benchmarks.transports.base import ByteSink, ByteSource, CommandTimeoutError, Tail, Transport
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.srun.errors import explain
from run_benchmarks.transports.srun.step import SCRIPT, Step
from run_benchmarks.transports.together import Together

# What a command's environment has from here, beside Slurm's own variables: as with a login, no more than says who and
# where the user is. The controller's own settings and secrets are none of the nodes' business.
PASSED_ON = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "USER")
# --overlap: steps share what the job has, its devices too. --cpu-bind: a step of one task would be bound to one core.
# --mpi: whatever the site prepares by default is for programs that Slurm itself starts. --quiet: errors are still told.
OPTIONS = (
    "--overlap",
    "--cpu-bind=none",
    "--mpi=none",
    "--quiet",
    f"--export={','.join(PASSED_ON)}",
)
# Those of Slurm's variables that say which Slurm, and who asks; any other is an option of whoever started FlagPerf.
SLURMS_OWN = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT")
# So long srun may take to end its step; and then, for it sometimes misses a signal while it starts one, the search for
# that step, and its end. All of it goes by way of slurmctld.
END_S = 4.0
MOST_FREE = 2  # steps that wait for a further command


class SrunTransport(Transport):
    """A node of a running job.

    A command takes a step that waits for one, or begins one: as many as run at once. A command that was under way when
    contact was lost is never repeated: whether it ran is not known.
    """

    def __init__(self, job: str, node: str) -> None:
        super().__init__(node)
        self._job = job
        self._here = LocalTransport(grace_s=END_S)
        self._free: list[Step] = []
        self._others: set[Step] = set()  # that run a command, stay for what one has left, or are about to end

    async def reach(self) -> None:
        """Run a command that does nothing in a step of its own."""
        await self._run_in(self._begun(), ("true",), None, Tail().take)

    def together(self) -> Transport:
        """The same node; commands of one moment are sent as one."""
        return Together(self)

    async def close(self) -> None:
        """End all steps, also those that stay for what was started in them."""
        steps, self._free, self._others = [*self._free, *self._others], [], set()
        await asyncio.gather(*(step.close(END_S) for step in steps))

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        self._free = [step for step in self._free if not step.is_over]
        step = self._free.pop() if self._free else self._begun()
        return await self._run_in(step, argv, stdin, stdout)

    async def _run_in(
        self, step: Step, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        self._others.add(step)
        try:
            code, errors = await step.run(argv, stdin, stdout)
        except BaseException:
            await asyncio.shield(self._end(step))
            raise
        if code is None:
            raise explain(errors, self.host, self._job)
        if len(self._free) < MOST_FREE and step.may_go_on:
            self._others.discard(step)
            self._free.append(step)
        else:
            step.finish()
        return code, errors

    def _begun(self) -> Step:
        name = f"flagperf-{secrets.token_hex(16)}"
        step = Step(self._here, name, self._srun(name, ("sh", "-c", SCRIPT)))
        step.add_done_callback(self._others.discard)
        return step

    async def _end(self, step: Step) -> None:
        """End a step, and see that it has ended; while slurmctld does not answer there is nothing to be done."""
        await step.kill()
        listing = ("squeue", "--steps", f"--jobs={self._job}", "--noheader", "--format=%i %j")
        with suppress(CommandTimeoutError):
            listed = await self._here.run(listing, timeout=END_S)
            for line in listed.stdout.splitlines():
                number, _, name = line.partition(" ")
                if name == step.name:
                    await self._here.run(("scancel", "--signal=KILL", number), timeout=END_S)

    def _srun(self, name: str, argv: Sequence[str]) -> tuple[str, ...]:
        step = (f"--nodelist={self.host}", "--nodes=1", "--ntasks=1", f"--job-name={name}")
        return srun(self._job, *step, *argv)


def srun(job: str, *words: str) -> tuple[str, ...]:
    """`srun` of a step of a job, as it would be for a user who has set no option of it by a variable.

    Args:
        words: which nodes, how many tasks, and what is executed.
    """
    others = [name for name in os.environ if name.startswith("SLURM_") and name not in SLURMS_OWN]
    unset = (f"--unset={name}" for name in others)
    return ("env", *unset, f"PATH={_path()}", "srun", *OPTIONS, f"--jobid={job}", *words)


def _path() -> str:
    """Where the user's programs are; those beside the controller's own Python are the controller's."""
    own = str(Path(sys.prefix, "bin")) if sys.prefix != sys.base_prefix else ""
    return os.pathsep.join(
        folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder != own
    )
