"""How long Slurm had suspended a job, by its record: what runs in it stands still, and has no other word of that."""

from __future__ import annotations

import time

from run_benchmarks.hosts.slurm.record import STOPPED, SUSPENDED, Job
from utils.numbers import whole

# States in which a job stands still, by `scontrol suspend` or another job's turn, or by a signal -> what ends it.
CONTINUED_BY = {SUSPENDED: "scontrol resume", STOPPED: "scancel --signal=CONT"}


def suspended_s(job: Job) -> float:
    """All suspensions since the job began, as far as they have come; 0 where there was none that its record tells of.

    SuspendTime is when it was suspended last or, once it goes on, when it did, SecsPreSuspend how long it ran until
    then: the rest it stood still.
    """
    begun, changed = job.time("StartTime"), job.time("SuspendTime")
    ran = whole(job.fields.get("SecsPreSuspend", ""))
    if begun is None or changed is None or ran is None:
        return 0.0
    lasts = time.time() - changed if job.state == SUSPENDED else 0.0
    return max(0.0, changed - begun - ran) + max(0.0, lasts)
