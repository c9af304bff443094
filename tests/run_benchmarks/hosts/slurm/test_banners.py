"""Slurm's commands where the site's wrappers print lines of their own, and records of other jobs."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.hosts import answers
from run_benchmarks.hosts.slurm.allocator import SlurmHosts
from run_benchmarks.hosts.slurm.holder import ABANDONED, beat_s, script
from run_benchmarks.hosts.slurm.jobs import Slurm
from run_benchmarks.hosts.slurm.record import UnreadableError, job_in
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.transports.base import ByteSink, ByteSource, Transport
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.builders import make_case
from tests.slurm.slurm import Slurm as Cluster

BANNER = """\
*** Maintenance on Monday ***
2026 was a good year
Your quota: 4096000 of 8192000 MiB used
31337
"""
ANOTHERS = "JobId=18 JobName=another JobState=RUNNING NodeList=n3\n"
OTHER = "JobId=16 JobName=a JobState=RUNNING NodeList=n[1-2]\n"
OWN = "JobId=17 JobName=b JobState=PENDING NodeList=(null)\n"
RUNS = "JobId=17 JobName=flagperf-run JobState=RUNNING NodeList=n1\n"
RENAMED = RUNS.replace("flagperf-run", "flagperf-run2")
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
    here = Printing(
        squeue="17 (PENDING) \n9 (COMPLETING) n[1-2]\n18 (RUNNING) n3\n", scontrol=RUNS + ANOTHERS
    )
    hosts = SlurmHosts(SlurmSettings(), "run", 1, lambda job, node: LocalTransport(node), Slurm(here))
    assert asyncio.run(hosts._submit(1, make_case())) == "17"
    assert here.submitted == 1


def test_no_number_in_a_banner_is_a_job() -> None:
    slurm = Slurm(Printing(squeue="17 (RUNNING) n1\n9 (PENDING) \n"))
    assert asyncio.run(slurm.named("x")) == ["9", "17"]
    assert asyncio.run(slurm.place(job_in(OWN))) == "1 of 2"
    assert asyncio.run(Slurm(Printing()).named("x")) == []


@pytest.mark.parametrize(
    ("records", "left"), [(RUNS + ANOTHERS, "17"), (RENAMED + ANOTHERS, None)], ids=["own", "none"]
)
def test_a_job_of_another_name_is_none_that_a_run_has_left(records: str, left: str | None) -> None:
    here = Printing(squeue="17 (RUNNING) n1\n18 (RUNNING) n3\n", scontrol=records)
    hosts = SlurmHosts(SlurmSettings(), "run", 1, lambda job, node: LocalTransport(node), Slurm(here))
    job = asyncio.run(hosts._left())
    assert (job and job.id) == left


# Before the real one: a banner with a number that is another job of this user's.
SQUEUE = """\
#!/bin/sh
echo '{line}'
exec {real} "$@"
"""


@pytest.mark.parametrize("line", ["{job} was a good year", "{job}"])
def test_a_round_begins_and_is_taken_up_in_its_own_job(
    slurm: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    one = make_case()
    one = replace(one, hosts=(), settings=replace(one.settings, nnodes=1))
    own = slurm.allocate("--nodelist=n1", "--exclusive", "--job-name=flagperf-run-of-another")
    others = slurm.allocate("--nodelist=n3", "--exclusive", "--comment=mine")
    program = tmp_path / "squeue"
    program.write_text(SQUEUE.format(line=line.format(job=others), real=shutil.which("squeue")))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def hosts() -> SlurmHosts:
        return SlurmHosts(SlurmSettings(), "run", 1, lambda job, node: LocalTransport(node))

    async def scenario() -> None:
        async with hosts().acquire(one) as first:
            assert [host.name for host in first.hosts] == ["n2"] and first.tenure
            async with hosts().acquire(replace(one, hosts=("n2",))) as second:
                assert second.tenure and second.tenure.id == first.tenure.id

    asyncio.run(asyncio.wait_for(scenario(), 120.0))
    assert slurm.job(others)["Comment"] == "mine"
    assert slurm.job(own)["JobState"] == slurm.job(others)["JobState"] == "RUNNING"


# FAKE of squeue: a banner around a comment that is written anew for BEATS calls. Its first call fails.
CLOCK = """\
#!/bin/sh
echo called >>{folder}/calls
calls=$(wc -l <{folder}/calls) seconds=$(wc -l <{folder}/calls)
{before}
[ "$calls" -gt 1 ] || exit 1
[ "$calls" -lt {beats} ] || calls={beats}
echo "flagperf-run has a controller at $calls"
{behind}
"""


WITH_CLOCK, PLAIN = 'echo "*** $seconds s past noon ***"', 'echo "*** see /news ***"'


@pytest.mark.parametrize("beats", [2, 6])
@pytest.mark.parametrize(
    "banner", [(WITH_CLOCK, ""), ("", WITH_CLOCK), (PLAIN, ""), ("", PLAIN), (PLAIN, WITH_CLOCK)]
)
def test_a_banner_is_no_controller_and_hides_none(
    tmp_path: Path, banner: tuple[str, str], beats: int
) -> None:
    settings = SlurmSettings(abandoned_after=10)
    before, behind = banner
    for name, text in (
        ("squeue", CLOCK.format(folder=tmp_path, beats=beats, before=before, behind=behind)),
        ("sleep", "#!/bin/sh\n"),  # FAKE, so that nothing is waited for
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    around = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "17"}
    held = subprocess.run(["sh", "-c", script(settings)], env=around, timeout=60)
    assert held.returncode == ABANDONED
    counted = 10 // beat_s(settings)
    assert len((tmp_path / "calls").read_text().splitlines()) == beats + counted


def test_the_last_line_of_sbatch_is_the_job() -> None:
    assert asyncio.run(Slurm(Printing(sbatch="17;cluster\n")).submit(("sbatch",), "")) == "17"


@pytest.mark.parametrize("records", [(OWN,), (OTHER, OWN), (ARRAY, OWN), (OWN, ARRAY)])
def test_the_record_is_that_of_the_job(records: Sequence[str]) -> None:
    job = asyncio.run(Slurm(Printing(scontrol="".join(records))).look("17"))
    assert job and (job.id, job.state, job.nodes) == ("17", "PENDING", ())


def test_the_record_of_another_job_is_none() -> None:
    with pytest.raises(UnreadableError, match="it is of job 16, not of 17"):
        asyncio.run(Slurm(Printing(scontrol=OTHER)).look("17"))
