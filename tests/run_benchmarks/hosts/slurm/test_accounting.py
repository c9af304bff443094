"""What Slurm's accounting has of jobs, by a real slurmdbd: who cancelled one, and what it does not say of memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.hosts.granted import AllocationEnd
from run_benchmarks.hosts.slurm.ends import ended
from run_benchmarks.hosts.slurm.jobs import Slurm as Commands
from run_benchmarks.hosts.slurm.record import energy_in
from tests.slurm.accounted import AccountedSlurm, need_accounting
from tests.slurm.fixtures import speak_to

GREEDY = "x = b'a' * (300 << 20); import time; time.sleep(300)"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountedSlurm]:
    need_accounting()
    cluster = AccountedSlurm(tmp_path_factory.mktemp("slurm"), nodes=2)
    with cluster.running():
        yield cluster


@pytest.fixture
def accounted(cluster: AccountedSlurm, monkeypatch: pytest.MonkeyPatch) -> AccountedSlurm:
    speak_to(cluster, monkeypatch)
    return cluster


def end_of(cluster: AccountedSlurm, job: int, *, is_forgotten: bool) -> AllocationEnd:
    """Why a job has ended, by what Slurm's commands say of it."""

    async def ask() -> AllocationEnd:
        record = None if is_forgotten else await Commands().look(str(job))
        return ended(str(job), record, await Commands().accounting(str(job)))

    cluster.wait_for_account(job)
    return asyncio.run(ask())


def test_a_job_that_slurm_has_forgotten_is_known_to_its_accounting(accounted: AccountedSlurm) -> None:
    job = accounted.allocate("--nodes=2", "--exclusive")
    accounted.run("srun", f"--jobid={job}", "--overlap", "true")
    accounted.run("scancel", str(job))
    end = end_of(accounted, job, is_forgotten=True)
    assert end.failure_class == "allocation_cancelled" and f"(CANCELLED by {os.getuid()})" in end.message
    lines = [line.split("|") for line in end.evidence.replace("sacct: ", "").splitlines()]
    assert [line[0] for line in lines] == [str(job), f"{job}.batch", f"{job}.0"]
    assert [line[4] for line in lines] == ["2", "1", "2"]
    # no energy is counted here: sacct prints a 0, which is none
    assert {line[5] for line in lines} == {"0"} and energy_in(lines, 2) is None


def test_of_a_job_that_is_killed_without_a_control_group_slurm_does_not_say_that_it_was_memory(
    accounted: AccountedSlurm, tmp_path: Path
) -> None:
    (tmp_path / "greedy.py").write_text(GREEDY)
    job = accounted.submit(f"exec python3 {tmp_path}/greedy.py", "--mem=100")
    accounted.wait_for_no_job()
    end = end_of(accounted, job, is_forgotten=False)
    assert end.failure_class == "allocation_ended" and f"sacct: {job}|FAILED|0:9|" in end.evidence
