"""What Slurm says of a job, as what becomes of the round: why it waits for ever, why it ended, that it is about to."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import datetime

from run_benchmarks.hosts.granted import AllocationEnd
from run_benchmarks.hosts.slurm.holder import ABANDONED
from run_benchmarks.hosts.slurm.record import Job
from utils.records import FailureClass, Verdict

# A word of Slurm's -> the verdict, the class, what happened, what to do.
_ENDS = {
    "NODE_FAIL": (
        Verdict.UNREACHABLE,
        FailureClass.NODE_FAILED,
        "a node of the job failed",
        "`sinfo --list-reasons` says which and why",
    ),
    "PREEMPTED": (
        Verdict.FAILED,
        FailureClass.ALLOCATION_PREEMPTED,
        "another job took the nodes",
        "use a partition or a QOS that is not preempted",
    ),
    "TIMEOUT": (
        Verdict.TIMED_OUT,
        FailureClass.ALLOCATION_TIME_LIMIT,
        "the job's time limit was reached",
        "raise time in HOSTS = slurm(...), or --time of the job that run.py is in, or lower CASE_DEADLINE_HOURS",
    ),
    "OUT_OF_MEMORY": (
        Verdict.FAILED,
        FailureClass.ALLOCATION_OUT_OF_MEMORY,
        "the job used more memory than it was granted",
        'give it more (mem="0" in HOSTS = slurm(...) is all that a node has), or use a smaller batch',
    ),
    "CANCELLED": (
        Verdict.FAILED,
        FailureClass.ALLOCATION_CANCELLED,
        "the job was cancelled",
        "ask who cancelled it; where Slurm has accounting, `sacct --jobs={job}` names the user",
    ),
}
_OTHERWISE = (
    Verdict.FAILED,
    FailureClass.ALLOCATION_ENDED,
    "the job has ended",
    "see what ended it: `scontrol show job {job}`, and slurmctld's log",
)
_ABANDONED = (
    *_OTHERWISE[:2],
    "the job gave its nodes back, as it heard of no controller",
    "raise abandoned_after in HOSTS = slurm(...), so that there is more time for `run.py resume`",
)
# Reasons for which a job waits until somebody does something: by Slurm's words, and what that is.
_ACTION = (
    (
        r"JobHeld\w+|launch_failed_requeued_held",
        "let it go: `scontrol release {job}`, or ask the cluster's staff",
    ),
    (
        r"Partition(NodeLimit|TimeLimit|Down|Inactive)",
        "`sinfo` shows the partitions, their limits and which are up",
    ),
    (r"DependencyNeverSatisfied|ReservationDeleted", "correct the options in HOSTS = slurm(...)"),
    (
        r"BadConstraints|MaxMemPerLimit",
        "`sinfo --format='%N %f %G %m %c'` shows the nodes: ask for what one has",
    ),
    (
        r"Invalid(Account|QOS)|(Account|QOS)NotAllowed|\w*PerJob\w*|QOSMin\w+|(Assoc|QOS)Grp(?!\w*Run)\w*Minutes\w*",
        "`sacctmgr show assoc user=$USER` and `sacctmgr show qos` show what you may use",
    ),
)


def waits_for_ever(job: Job) -> str:
    """What has to be done about a job that does not begin by itself; empty where waiting may help."""
    reason = job.fields.get("Reason", "")
    return next((remedy.format(job=job.id) for words, remedy in _ACTION if re.fullmatch(words, reason)), "")


def ended(
    job_id: str, job: Job | None, accounting: Sequence[Sequence[str]], down: Sequence[str] = ()
) -> AllocationEnd:
    """Why there is no job any more; None for one that Slurm has forgotten, as it does after some minutes.

    Args:
        accounting: what `sacct` has of it.
        down: its nodes that do not answer.
    """
    cells = [cell for line in accounting[:1] for cell in line]
    state = job.state if job else (cells[1].split() or [""])[0] if cells else ""
    code = job.fields.get("ExitCode", "") if job else cells[2] if cells else ""
    verdict, kind, what, remedy = _ENDS.get(state, _OTHERWISE)
    if state == "FAILED" and code == f"{ABANDONED}:0":
        verdict, kind, what, remedy = _ABANDONED
    by = " ".join(cells[1].split()[1:]) if cells and "CANCELLED" in cells[1] else ""  # `by UID`
    message = (
        f"Slurm's job {job_id}: {what} ({' '.join(filter(None, (state or 'Slurm has forgotten it', by)))})"
    )
    host = down[0] if kind is FailureClass.NODE_FAILED and down else ""
    return AllocationEnd(
        verdict, kind, message, _evidence(job, accounting), _advice(remedy, job_id, kind), host=host
    )


def node_lost(job: Job, node: str) -> AllocationEnd:
    """Of a job that outlives the failure of its nodes (`--no-kill`), and has lost one that is needed."""
    verdict, kind, what, remedy = _ENDS["NODE_FAIL"]
    message = f"Slurm's job {job.id}: {what} ({node}, without which the job goes on)"
    return AllocationEnd(verdict, kind, message, _evidence(job, ()), _advice(remedy, job.id, kind), host=node)


def about_to_end(job: Job) -> AllocationEnd:
    """Why a job that still runs has little time left: its limit, or a preemption that gives it some grace."""
    is_preempted = job.time("PreemptTime") is not None
    verdict, kind, _, remedy = _ENDS["PREEMPTED" if is_preempted else "TIMEOUT"]
    end = job.time("EndTime") or time.time()
    why = (
        "another job takes the nodes"
        if is_preempted
        else f"its time limit is {job.fields.get('TimeLimit', '')}"
    )
    message = (
        f"Slurm's job {job.id} ends at {datetime.fromtimestamp(end):%H:%M:%S}, for {why}: "
        "the round was ended so that its logs are saved"
    )
    return AllocationEnd(
        verdict, kind, message, _evidence(job, ()), _advice(remedy, job.id, kind), is_over=False
    )


def _advice(remedy: str, job: str, kind: FailureClass) -> str:
    return f"{remedy.format(job=job)}; see docs/failures.md, {kind.value}"


def _evidence(job: Job | None, accounting: Sequence[Sequence[str]]) -> str:
    shown = [f"scontrol: {job.text}"] if job else []
    return "\n".join([*shown, *(f"sacct: {'|'.join(line)}" for line in accounting)])
