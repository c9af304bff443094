"""Slurm's commands where the site's wrappers print lines of their own, and records of other jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from run_benchmarks.hosts import answers
from run_benchmarks.hosts.slurm.allocator import SlurmHosts
from run_benchmarks.hosts.slurm.jobs import Slurm
from run_benchmarks.hosts.slurm.record import UnreadableError
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.transports.base import ByteSink, ByteSource, Transport
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.builders import make_case

BANNER = "*** Maintenance on Monday ***\n2026 was a good year\n"
OTHER = "JobId=16 JobName=a JobState=RUNNING NodeList=n[1-2]\n"
OWN = "JobId=17 JobName=b JobState=PENDING NodeList=(null)\n"
ARRAY = "JobId=18 ArrayJobId=17 JobName=b JobState=RUNNING NodeList=n3\n"


class Printing(Transport):
    """FAKE: a machine whose commands of Slurm's print the site's banner before what the test says.

    sbatch has no answer the first time, though the job has come to Slurm.
    """

    def __init__(self, **printed: str) -> None:
        super().__init__("here")
        self.printed, self.submitted = printed, 0

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        program = next(word for word in argv if word in ("sbatch", "squeue", "scancel", "scontrol"))
        self.submitted += program == "sbatch"
        if program == "sbatch" and not self.printed.get(program):
            return 1, "sbatch: error: Socket timed out on send/recv operation"
        await stdout((BANNER + self.printed.get(program, "")).encode())
        return 0, ""


def test_a_line_that_is_no_job_is_not_waited_for() -> None:
    slurm = Slurm(Printing(squeue="17 (PENDING) \n9 (COMPLETING) n[1-2]\n"))
    left = asyncio.run(slurm.left_of("x"))
    assert left == {"17": "job 17 (PENDING)", "9": "job 9 (COMPLETING) n[1-2]"}
    asyncio.run(Slurm(Printing()).end("x"))


def test_a_job_whose_answer_was_lost_is_found_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PAUSES_S", (0.0, 0.0))
    here = Printing(squeue="17 (PENDING) \n9 (COMPLETING) n[1-2]\n")
    hosts = SlurmHosts(SlurmSettings(), "run", 1, lambda job, node: LocalTransport(node), Slurm(here))
    assert asyncio.run(hosts._submit(1, make_case())) == "17"
    assert here.submitted == 1


def test_the_last_line_of_sbatch_is_the_job() -> None:
    assert asyncio.run(Slurm(Printing(sbatch="17;cluster\n")).submit(("sbatch",), "")) == "17"


@pytest.mark.parametrize("records", [(OWN,), (OTHER, OWN), (ARRAY, OWN), (OWN, ARRAY)])
def test_the_record_is_that_of_the_job(records: Sequence[str]) -> None:
    job = asyncio.run(Slurm(Printing(scontrol="".join(records))).look("17"))
    assert job and (job.id, job.state, job.nodes) == ("17", "PENDING", ())


def test_the_record_of_another_job_is_none() -> None:
    with pytest.raises(UnreadableError, match="it is of job 16, not of 17"):
        asyncio.run(Slurm(Printing(scontrol=OTHER)).look("17"))
