"""The srun transport: commands on a node of a Slurm job, each a step of its own beside the others."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from run_benchmarks.transports.base import ByteSink, ByteSource, CommandTimeoutError, Transport
from run_benchmarks.transports.framed import BEGIN, END, RARE, Framed
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.srun.errors import explain
from run_benchmarks.transports.together import Together

# What a command's environment has from here, beside Slurm's own variables: as with a login, no more than says who and
# where the user is. The controller's own settings and secrets are none of the nodes' business.
PASSED_ON = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "USER")
# --overlap: steps share what the job has, its devices too. --cpu-bind: a step of one task would be bound to one core.
# --mpi: whatever the site prepares by default is for programs that Slurm itself starts. --quiet: errors are still told.
OPTIONS = (
    "--overlap",
    "--nodes=1",
    "--ntasks=1",
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
# Where Slurm tracks a step's processes by a control group, all that are left in it are killed when the step ends, also
# units that are to outlive the command which started them. So the step stays as long as any is left; it looks four
# times a minute, which costs nothing. Where Slurm tracks them otherwise there is no such group, and no need.
LEFT = r"""stays=; group=
while IFS=: read -r _ kind path; do
  case $kind:$path in
    freezer:*/step_*) group=/sys/fs/cgroup/freezer$path/cgroup.procs ;;
    :*/step_*) group=/sys/fs/cgroup$path/cgroup.procs ;;
  esac
done </proc/self/cgroup
left() { while read -r pid; do [ "$pid" = $$ ] || return 0; done <"$group"; return 1; }
[ -r "$group" ] && left && stays=stays"""
STAY = """if [ "$stays" ]; then while left; do sleep 15; done; fi"""
SCRIPT = "\n".join((BEGIN, LEFT, END, STAY))


class SrunTransport(Transport):
    """A node of a running job.

    Nothing is held open between commands: each is an `srun` of its own. A command that was under way when contact was
    lost is never repeated: whether it ran is not known.
    """

    def __init__(self, job: str, node: str) -> None:
        super().__init__(node)
        self._job = job
        self._here = LocalTransport(grace_s=END_S)
        self._staying: set[asyncio.Future[tuple[int, str]]] = set()

    async def reach(self) -> None:
        """Run a command that does nothing."""
        await self.run(["true"])

    def together(self) -> Transport:
        """The same node; commands of one moment share a step."""
        return Together(self)

    async def close(self) -> None:
        """End the steps that stay for what was started in them, with that."""
        staying, self._staying = self._staying, set()
        for step in staying:
            step.cancel()
        await asyncio.gather(*staying, return_exceptions=True)

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        framed = Framed(stdout)
        words = self._srun(_name(framed.mark), ("sh", "-c", SCRIPT, "sh", framed.mark, *argv))
        step = asyncio.ensure_future(self._here._run(words, stdin, framed.take))
        stays = asyncio.ensure_future(framed.stays.wait())
        try:
            await asyncio.wait({step, stays}, return_when=asyncio.FIRST_COMPLETED)
            errors = self._keep(step) if framed.stays.is_set() else (await step)[1]
        except BaseException:
            await asyncio.shield(self._end(step, framed.mark))
            raise
        finally:
            stays.cancel()
        if framed.code is None:
            raise explain(errors + framed.noise.decode(errors="replace"), self.host, self._job)
        return framed.code, framed.of_command(errors)

    def _keep(self, step: asyncio.Future[tuple[int, str]]) -> str:
        """Let a step go on; what its command printed to standard error comes with the step's end, which is too late."""
        self._staying.add(step)
        step.add_done_callback(self._staying.discard)
        return ""

    async def _end(self, step: asyncio.Future[tuple[int, str]], mark: str) -> None:
        """End a step, and see that it has ended; while slurmctld does not answer there is nothing to be done."""
        step.cancel()
        await asyncio.wait({step})
        listing = ("squeue", "--steps", f"--jobs={self._job}", "--noheader", "--format=%i %j")
        with suppress(CommandTimeoutError):
            listed = await self._here.run(listing, timeout=END_S)
            for line in listed.stdout.splitlines():
                number, _, name = line.partition(" ")
                if name == _name(mark):
                    await self._here.run(("scancel", "--signal=KILL", number), timeout=END_S)

    def _srun(self, name: str, argv: Sequence[str]) -> tuple[str, ...]:
        """`srun` of a command, as it would be for a user who has set no option of it by a variable."""
        others = [name for name in os.environ if name.startswith("SLURM_") and name not in SLURMS_OWN]
        step = (f"--jobid={self._job}", f"--nodelist={self.host}", f"--job-name={name}")
        return (
            "env",
            *(f"--unset={name}" for name in others),
            f"PATH={_path()}",
            "srun",
            *OPTIONS,
            *step,
            *argv,
        )


def _name(mark: str) -> str:
    """What Slurm calls the step."""
    return f"flagperf-{mark.removeprefix(RARE)}"


def _path() -> str:
    """Where the user's programs are; those beside the controller's own Python are the controller's."""
    own = str(Path(sys.prefix, "bin")) if sys.prefix != sys.base_prefix else ""
    return os.pathsep.join(
        folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder != own
    )
