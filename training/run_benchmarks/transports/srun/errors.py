"""Say why a command's end is not known, by what srun printed, and what to type next."""

from __future__ import annotations

import re

from run_benchmarks.transports.base import AuthenticationError, PassingError, TransportError
from utils.text_files import printable, shortened_to_words

LONGEST_REASON = 500  # characters
_LABEL = re.compile(r"^(?:srun|slurmstepd[^ :]{0,255}): (?:error: |fatal: )?", re.MULTILINE)
_NO_REASON = "lacks support for cpu binding"  # and so needs no telling not to bind
# Of what Slurm 22.05 to 24.11 says: a part of it, what that means, what to do, and the kind of error. The first that is
# there counts: a step that is gone for another reason is cancelled too, and behind each stands what srun did about it.
_MEANINGS: tuple[tuple[str, str, str, type[TransportError]], ...] = (
    (
        r"Munge |authentication|[Ii]nvalid (?:job )?credential|Access/permission denied",
        "Slurm does not take this user's credentials",
        "see whether munged runs with the same key, and the clock is right, here and there: `munge -n | unmunge`",
        AuthenticationError,
    ),
    (
        r"DUE TO NODE FAILURE|Node failure on|Communication connection failure|Task launch for .{1,200} failed",
        "its node fails",
        "see `scontrol show node {node}`: State and Reason; then slurmd's log there",
        TransportError,
    ),
    (
        r"Invalid job id|Job/step already completing|[Ee]xpired|already terminated",
        "the job has ended",
        "see `scontrol show job {job}`, or `sacct -j {job}`, how and why",
        TransportError,
    ),
    (
        r"CANCELLED AT|task \d{1,9}: (?:Terminated|Killed)",
        "its step was ended from outside, with the job or alone",
        "see `scontrol show job {job}`, or `sacct -j {job}`, whether the job was cancelled, preempted, or out of time",
        TransportError,
    ),
    (
        r"Requested node configuration is not available|[Nn]ode .{0,200}not in this job|Invalid node name",
        "the job does not have this node",
        "see `scontrol show job {job}`: NodeList",
        TransportError,
    ),
    (
        r"contact slurm controller|timed out on send/recv|step creation temporarily disabled",
        "slurmctld does not answer",
        "see `scontrol ping`; once it answers: run again",
        PassingError,
    ),
    (
        r"srun.{0,3}: No such file",
        "there is no srun on this machine",
        "run FlagPerf where Slurm's commands are, and in the PATH: a login node, or a job",
        TransportError,
    ),
)


def explain(printed: str, node: str, job: str) -> TransportError:
    """The error for the user.

    Args:
        printed: by srun, and by the command before contact was lost.
    """
    slurms = [line for line in printed.splitlines() if _LABEL.match(line) and _NO_REASON not in line]
    printed = printable("\n".join(slurms or printed.splitlines()[-3:]))
    said = shortened_to_words(_LABEL.sub("", printed).strip(), LONGEST_REASON) or "nothing"
    for pattern, meaning, remedy, kind in _MEANINGS:
        if re.search(pattern, printed):
            remedy = remedy.format(node=node, job=job)
            return kind(f"contact was lost: {meaning}; srun: {said}", where=node, remedy=remedy)
    remedy = f"see `scontrol show job {job}` and `scontrol show node {node}`; run again"
    return TransportError(f"contact was lost; srun: {said}", where=node, remedy=remedy)
