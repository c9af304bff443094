"""How long a job of Slurm's lasts, and what there is to say of it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from run_benchmarks.hosts.granted import AllocationEnd, GrantedJob
from run_benchmarks.hosts.slurm.ends import about_to_end, ended
from run_benchmarks.hosts.slurm.jobs import Slurm
from run_benchmarks.hosts.slurm.last_act import LastAct
from run_benchmarks.hosts.slurm.queue import looked_at
from run_benchmarks.hosts.slurm.record import (
    COMPLETING,
    RUNNING,
    STOPPED,
    SUSPENDED,
    Job,
    SlurmError,
    energy_in,
)
from run_benchmarks.hosts.slurm.suspension import CONTINUED_BY, suspended_s
from run_benchmarks.run_log import LOGGER

LOOK_S, ENDING_LOOK_S = 10.0, 1.0
# After its end Slurm ends a job within a minute; its clock may be another than this machine's.
OVERDUE_S = 600.0
# What a job is that was cancelled, from that moment on.
GIVEN_BACK = (COMPLETING, "CANCELLED")


class JobTenure:
    """Of a job that runs.

    Args:
        save_before: seconds before its end at which that counts as near; of a short job no more than a quarter.
        earlier: what was known of it when a round began that is taken up.
    """

    def __init__(self, slurm: Slurm, job: Job, save_before: float, earlier: GrantedJob | None = None) -> None:
        self._slurm, self._job, self._save_before = slurm, job, save_before
        before = earlier if earlier and earlier.job == job.id else None
        self._suspended_before_s = before.suspended_before_s if before else suspended_s(job)
        self._least_suspended_s = self._suspended_s = before.suspended_s if before else 0.0
        self._stopped_s = 0.0  # Slurm keeps no time of that
        self._state, self._was_taken = job.state, False
        self._has_odd_end = False  # which has been told
        self._last_acts: list[LastAct] = []

    @property
    def id(self) -> str:
        """The job's ID."""
        return self._job.id

    @property
    def is_suspended(self) -> bool:
        """Whether it is, as of the last look."""
        return self._job.state in CONTINUED_BY

    async def end(self) -> AllocationEnd:
        """Why it ends: Slurm's last word of it, once it is over; before that, that little time is left."""
        while True:
            job = await looked_at(self._slurm, self.id, is_in_use=True)
            if job is None or not job.is_live:
                self._was_taken = True
                return ended(self.id, job, await self._accounting(), await self._down())
            self._note_suspension(job)
            self._job = job
            if job.state not in (COMPLETING, SUSPENDED) and self.is_near_end(job):
                return about_to_end(job)  # of one that is suspended Slurm moves the end once it goes on
            await asyncio.sleep(ENDING_LOOK_S if job.state == COMPLETING else LOOK_S)

    def _note_suspension(self, job: Job) -> None:
        """Say what is new of it."""
        self._stopped_s += LOOK_S if job.state == STOPPED else 0.0
        stands_still = job.state in CONTINUED_BY
        if stands_still and not self.is_suspended:
            command = f"{CONTINUED_BY[job.state]} {self.id}"
            goes_on = f"the round goes on, or ends, when the job does ({command})"
            LOGGER.warning(f"Slurm's job {self.id} is {job.state}: {goes_on}")
        elif self.is_suspended and not stands_still:
            LOGGER.info(f"Slurm's job {self.id} goes on")
        self._count_suspension(job)

    def _count_suspension(self, job: Job) -> None:
        """As its record says while it runs; else the most that was seen: where it ends so, that lacks the last.

        Nor has it what was noted of a job that was stopped before a round was taken up.
        """
        suspended = suspended_s(job) - self._suspended_before_s + self._stopped_s
        least = self._least_suspended_s if job.state == RUNNING else self._suspended_s
        self._suspended_s = max(least, suspended)

    def at_end(self, script: str) -> None:
        """Let a script run on every node of the job when that is ended."""
        if script:
            self._last_acts.append(LastAct(self._job, script))

    async def close(self) -> None:
        """Let the nodes forget those scripts, which they execute once more."""
        for last_act in self._last_acts:
            await last_act.close()

    def is_near_end(self, job: Job, share: float = 1.0) -> bool:
        """Whether less time is left than saving the logs may take; with `share` 2, than twice that."""
        start, end = job.time("StartTime"), job.time("EndTime")
        if start is None or end is None or self._is_odd(job, start, end):
            return False
        return end - time.time() <= share * min(self._save_before, (end - start) / 4)

    def _is_odd(self, job: Job, start: float, end: float) -> bool:
        """Whether it cannot be that a job which runs ends at this moment; that is told once."""
        is_odd = end < start or (job.state == RUNNING and end < time.time() - OVERDUE_S)
        if is_odd and not self._has_odd_end:
            LOGGER.warning(
                f"Slurm has {job.fields['EndTime']} as the end of job {self.id}, which runs since "
                f"{job.fields['StartTime']}: that counts for nothing, and the round goes on until Slurm ends the job"
            )
        self._has_odd_end = self._has_odd_end or is_odd
        return is_odd

    async def record(self) -> GrantedJob:
        """The job as Slurm has it now; as it was known last, where it says nothing.

        Its state is not that of the end which giving the nodes back has put to it, but that before.
        """
        with suppress(SlurmError):
            self._job = await self._slurm.look(self.id) or self._job
        self._count_suspension(self._job)
        job, fields = self._job, self._job.fields
        if self._was_taken or job.state not in GIVEN_BACK:
            self._state = job.state
        submitted, started = job.time("SubmitTime"), job.time("StartTime")
        accounting = [] if job.is_live else await self._accounting()
        return GrantedJob(
            scheduler="slurm",
            job=job.id,
            nodes=job.nodes,
            state=self._state,
            partition=fields.get("Partition", ""),
            account=fields.get("Account", ""),
            qos=fields.get("QOS", ""),
            tres=fields.get("TRES", ""),
            per_node=fields.get("TresPerNode", ""),
            submitted=fields.get("SubmitTime", ""),
            started=fields.get("StartTime", ""),
            waited_s=started - submitted if submitted is not None and started is not None else None,
            energy_j=energy_in(accounting, len(job.nodes)),
            suspended_s=self._suspended_s,
            suspended_before_s=self._suspended_before_s,
        )

    async def _down(self) -> list[str]:
        with suppress(SlurmError):
            return await self._slurm.down(self._job.nodes)
        return []

    async def _accounting(self) -> list[list[str]]:
        with suppress(SlurmError):
            return await self._slurm.accounting(self.id)
        return []
