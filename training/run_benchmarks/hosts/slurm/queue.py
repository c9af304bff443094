"""A job in Slurm's queue: its place, why it waits and when it may start are shown, until it runs or never will."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from run_benchmarks.hosts.base import AllocationError
from run_benchmarks.hosts.slurm.ends import ended, waits_for_ever
from run_benchmarks.hosts.slurm.jobs import Slurm
from run_benchmarks.hosts.slurm.record import RUNNING, Job, SlurmError, UnreadableError
from run_benchmarks.run_log import LOGGER

SHORTEST_S, LONGEST_S = 0.2, 15.0  # between two looks: the longer the wait so far, the longer
GROWTH = 1.3


async def wait_in_queue(slurm: Slurm, job_id: str) -> Job:
    """The job, once it runs. Cancelling this leaves it in the queue.

    Raises:
        AllocationError: it has ended, waits for what does not come by itself, or its record cannot be read.
    """
    pause_s, shown, doubted = SHORTEST_S, "", ""
    while True:
        job = await looked_at(slurm, job_id)
        if job is None or not job.is_live:
            raise AllocationError.by(ended(job_id, job, await slurm.accounting(job_id)))
        if job.state == RUNNING and job.nodes:
            return job
        remedy, reason = waits_for_ever(job), job.fields.get("Reason", "")
        if remedy and reason == doubted:  # twice: a node that just came back, say, may have been the reason
            message = f"Slurm's job {job_id} would wait for ever: {reason}"
            raise AllocationError(message, where="slurm", remedy=remedy)
        doubted = reason if remedy else ""
        shown = await _show(slurm, job, shown)
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * GROWTH, LONGEST_S)


async def looked_at(slurm: Slurm, job_id: str, *, is_in_use: bool = False) -> Job | None:
    """The job, or None where Slurm has forgotten it; a Slurm that does not answer is asked until it does.

    Args:
        is_in_use: a round trains on its nodes, and would be lost: it is asked, too, until what it says can be read.

    Raises:
        UnreadableError: twice in a row.
    """
    said, was_unreadable = "", False
    while True:
        try:
            return await slurm.look(job_id)
        except SlurmError as error:
            is_unreadable = isinstance(error, UnreadableError)
            if is_unreadable and was_unreadable and not is_in_use:
                raise
            was_unreadable = is_unreadable
            if error.message != said:
                LOGGER.warning(
                    f"what Slurm says of job {job_id} is not known, and is asked again: {error.message}"
                )
            said = error.message
            await asyncio.sleep(LONGEST_S)


async def _show(slurm: Slurm, job: Job, shown: str) -> str:
    """Log how it stands with a job, where that is not what was shown last; what is shown now."""
    place = ""
    with suppress(SlurmError):
        place = await slurm.place(job)
    start = job.fields.get("StartTime", "")
    parts = (
        f"place {place}" if place else "",
        job.fields.get("Reason", job.state).replace("_", " "),
        f"expected start {start.replace('T', ' ')}" if start else "no start is expected yet",
    )
    text = f"Slurm's job {job.id} waits in {job.fields.get('Partition', 'the queue')}: {', '.join(filter(None, parts))}"
    if text != shown:
        LOGGER.info(text)
    return text
