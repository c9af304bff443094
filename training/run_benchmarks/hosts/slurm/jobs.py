"""Slurm's commands, on this machine: each has a time limit, and what they print is read here and in `record.py`."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from run_benchmarks.hosts.base import NotGivenBackError
from run_benchmarks.hosts.slurm.holder import RIGHTS
from run_benchmarks.hosts.slurm.record import (
    LONGEST_RECORD,
    Job,
    SlurmError,
    UnreadableError,
    fields_of,
    job_in,
    record_of,
)
from run_benchmarks.transports.base import WHOLE_BYTES, Completed, Tail, Transport
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.srun import SLURMS_OWN
from utils.errors import FlagPerfError
from utils.text_files import shortened

GIVE_BACK_S, LOOK_S = 45.0, 0.25  # a node that does not answer keeps its job for minutes
LIMIT_S = 60.0  # a controller of Slurm's that is being started anew is waited for by its commands, too
MOST_OF_A_JOB = 2**22  # bytes: two hundred for the name of each of ten thousand nodes, and as much again
# In this form whatever the user's environment says.
SCONTROL = ("env", "SLURM_TIME_FORMAT=standard", "scontrol")
# Of what sbatch reads there only by what right a job is: what it is and gets follows from the settings alone, or two
# runs of one configuration would differ by the shell that they were started from.
_NEEDED = re.compile(rf"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|SBATCH_({'|'.join(RIGHTS).upper()})")
# A site's wrappers and profiles print lines of their own, also before Slurm's: what is no answer is left out. They may
# have numbers in them, or be one: a job's line has its state, too.
_ID = re.compile(r"\d{1,12}", re.ASCII)
_LISTED, _LISTED_AS = re.compile(r"(\d{1,12}) \([A-Z_]+\)(?: .*)?", re.ASCII), "--format=%A (%T) %N"
# By Slurm's words: a refusal; but that no controller was reached ends a submission, too.
_REFUSED = re.compile(r"submission failed|allocation failure|invalid|denied|not found|option", re.IGNORECASE)
_NO_CONTACT = re.compile(
    r"unable to contact|connect|timed out|temporarily|standby|zero bytes|(send|receive) fail|authentication",
    re.IGNORECASE,
)
_ACCOUNTED = "JobID,State,ExitCode,Elapsed,NNodes,ConsumedEnergyRaw"


class NoSuchNodesError(SlurmError):
    """Slurm has no such nodes, or too few, as a job asks for; waiting may not help."""

    may_pass = False


STUCK_REMEDY = (
    "`squeue --me` shows what becomes of it; a node that does not end a job (its epilog or slurmd hangs, its power is "
    "gone) is for the cluster's staff, `scontrol show node` says how it stands with it"
)
NO_SUCH_NODE = (
    "correct gres, constraint and the like in slurm(...): `sinfo --format='%P %D %f %G'` shows partitions, nodes, "
    "their features and gres"
)


class Slurm:
    """The Slurm whose commands this machine has."""

    def __init__(self, transport: Transport | None = None) -> None:
        self._here = transport or LocalTransport("slurm")
        self._user = f"--user={os.getuid()}"

    async def submit(self, argv: Sequence[str], script: str) -> str:
        """Send a batch job; its ID.

        Raises:
            SlurmError: it was refused, with Slurm's words.
        """
        done = await self._checked((*_with_little_around(), *argv), script.encode())
        job = done.stdout.strip().rpartition("\n")[2].partition(";")[0]
        if not _ID.fullmatch(job):
            raise SlurmError(f"sbatch printed no job ID: {shortened(done.stdout, 100)!r}", where="slurm")
        return job

    async def test(self, argv: Sequence[str], script: str) -> str:
        """What Slurm says of a job that is not to be sent (`--test-only`): when it would begin, and on what.

        Raises:
            SlurmError: it would not be taken now.
        """
        return (await self._checked((*_with_little_around(), *argv), script.encode())).stderr.strip()

    async def look(self, job: str) -> Job | None:
        """A job, also one that has ended some minutes ago; None where Slurm has forgotten it.

        Raises:
            UnreadableError: what it prints cannot be read, or is of another job.
            SlurmError: it does not answer.
        """
        done = await self._run((*SCONTROL, "show", "job", "--oneliner", job), most=MOST_OF_A_JOB)
        if "Invalid job id" in done.stderr:
            return None
        _check(done)
        return job_in(record_of(job, done.stdout), job)

    async def named(self, name: str) -> list[str]:
        """The IDs of this user's jobs of a name, those that ended some minutes ago among them; the oldest first."""
        return sorted(await self._listed(self._user, f"--name={name}", "--states=all"), key=int)

    async def names(self, beginning: str) -> dict[str, list[tuple[str, str]]]:
        """This user's jobs that wait or run, of names with this beginning: name -> `job ID` and state of each."""
        argv = ("squeue", "--noheader", self._user, "--format=%A %T %j")
        jobs: dict[str, list[tuple[str, str]]] = {}
        for line in (await self._checked(argv)).stdout.splitlines():
            words = line.split()  # a job's name may be of any characters, a line's end among them
            if len(words) == 3 and _ID.fullmatch(words[0]) and words[2].startswith(beginning):
                jobs.setdefault(words[2], []).append((f"job {words[0]}", words[1]))
        return jobs

    async def cancel(self, name: str) -> None:
        """Cancel this user's jobs of a name; it is no error if there are none."""
        await self._checked(("scancel", self._user, f"--name={name}"))

    async def end(self, name: str, but: Collection[str] = ()) -> None:
        """Cancel this user's jobs of a name, and wait until Slurm has them ended; it is no error if there are none.

        Args:
            but: the IDs of jobs that are not waited for.

        Raises:
            NotGivenBackError: others are still there after GIVE_BACK_S.
        """
        await self.cancel(name)
        until = time.monotonic() + GIVE_BACK_S
        while stuck := {job: text for job, text in (await self.left_of(name)).items() if job not in but}:
            if time.monotonic() > until:
                raise NotGivenBackError(stuck, GIVE_BACK_S, where="slurm", remedy=STUCK_REMEDY)
            await asyncio.sleep(LOOK_S)

    async def left_of(self, name: str) -> dict[str, str]:
        """This user's jobs of a name that are not over: ID -> what to call it, its state and nodes."""
        listed = await self._listed(self._user, f"--name={name}")
        return {job: f"job {line}" for job, line in listed.items()}

    async def comment(self, job: str, text: str) -> None:
        """Write a job's comment."""
        await self._checked((*SCONTROL, "update", f"JobId={job}", f"Comment={text}"))

    async def place(self, job: Job) -> str:
        """`3 of 17`: a job's place among those that wait in its partition, as far as this user may see them."""
        partition = job.fields.get("Partition", "")
        ids = list(await self._listed("--states=PENDING", f"--partition={partition}", "--sort=-p,i"))
        return f"{ids.index(job.id) + 1} of {len(ids)}" if job.id in ids else ""

    async def addresses(self, nodes: Sequence[str]) -> dict[str, str]:
        """Node -> the address by which others reach it; its name where Slurm tells none."""
        known = await self._nodes(nodes)
        return {node: known.get(node, {}).get("NodeAddr") or node for node in nodes}

    async def down(self, nodes: Sequence[str]) -> list[str]:
        """Those of the nodes that Slurm has as down, or as not answering."""
        known = await self._nodes(nodes)
        return [
            node for node, each in known.items() if re.search(r"DOWN|FAIL|NOT_RESP", each.get("State", ""))
        ]

    async def accounting(self, job: str) -> list[list[str]]:
        """What `sacct` has of a job and its steps, a line each, in the order of `_ACCOUNTED`; none where it is off."""
        argv = ("sacct", f"--jobs={job}", "--noheader", "--parsable2", f"--format={_ACCOUNTED}")
        done = await self._run(argv)
        lines = shortened(done.stdout, LONGEST_RECORD).splitlines() if done.ok else []
        return [cells for line in lines if len(cells := line.split("|")) == len(_ACCOUNTED.split(","))]

    async def _listed(self, *which: str) -> dict[str, str]:
        """The jobs that squeue lists, in its order: ID -> ID, state and nodes."""
        done = await self._checked(("squeue", "--noheader", *which, _LISTED_AS))
        lines = map(_LISTED.fullmatch, done.stdout.splitlines())
        return {line[1]: line[0].strip() for line in lines if line}

    async def _nodes(self, nodes: Sequence[str]) -> dict[str, dict[str, str]]:
        """Node -> what Slurm has of it, by Slurm's names."""
        done = await self._checked((*SCONTROL, "show", "node", "--oneliner", ",".join(nodes)))
        told = map(fields_of, done.stdout.splitlines())
        asked = set(nodes)
        return {each["NodeName"]: each for each in told if each.get("NodeName") in asked}

    async def _checked(self, argv: Sequence[str], stdin: bytes | None = None) -> Completed:
        return _check(await self._run(argv, stdin))

    async def _run(
        self, argv: Sequence[str], stdin: bytes | None = None, most: int = WHOLE_BYTES
    ) -> Completed:
        """A command's end. One that prints more than `most` bytes is ended: it may never stop by itself."""
        output = Tail(most)

        async def take(chunk: bytes) -> None:
            await output.take(chunk)
            if output.is_cut:
                raise UnreadableError(f"more than {most} bytes", _program(argv))

        try:
            done = await self._here.run(argv, stdin=stdin, stdout=take, timeout=LIMIT_S)
        except SlurmError:
            raise
        except FlagPerfError as error:
            raise SlurmError(error.message, where="slurm") from error
        return replace(done, stdout=output.text)


def _with_little_around() -> Iterator[str]:
    """Before a command: it gets no variables but those that Slurm's commands need; others may hold secrets."""
    yield "env"
    yield from (
        f"--unset={name}" for name in os.environ if not (_NEEDED.fullmatch(name) or name in SLURMS_OWN)
    )


def _check(done: Completed) -> Completed:
    """A command's answer, if it has succeeded."""
    if done.ok:
        return done
    program = _program(done.argv)
    if done.returncode == 127:
        remedy = "run FlagPerf where Slurm's commands are: on a login node, or in a job"
        raise _final(SlurmError(f"there is no {program} on this machine", where="slurm", remedy=remedy))
    said = done.last_lines(5).replace(f"{program}: ", "")
    message = f"{program}: {said or f'exit code {done.returncode}'}"
    # of a kind of device, or a number of them, that no node has; it does not pass with waiting
    if "node configuration" in said or "gres" in said:
        raise NoSuchNodesError(message, where="slurm", remedy=NO_SUCH_NODE)
    error = SlurmError(message, where="slurm")
    raise _final(error) if _REFUSED.search(said) and not _NO_CONTACT.search(said) else error


def _final(error: SlurmError) -> SlurmError:
    """The error as one that asking again does not mend."""
    error.may_pass = False
    return error


def _program(argv: Sequence[str]) -> str:
    """The command of Slurm's that is called."""
    return next(word for word in argv if word != "env" and "=" not in word)
