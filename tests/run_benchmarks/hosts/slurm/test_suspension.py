"""A job that Slurm suspends stands still, with all that runs in it, and a round's figures say so. A real Slurm."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.hosts.granted import GrantedJob
from run_benchmarks.hosts.slurm import tenure
from run_benchmarks.hosts.slurm.jobs import Slurm as Commands
from run_benchmarks.hosts.slurm.record import Job, job_in
from run_benchmarks.hosts.slurm.suspension import suspended_s
from run_benchmarks.hosts.slurm.tenure import JobTenure
from run_benchmarks.run_log import LOGGER
from tests.ports import free_port
from tests.run_benchmarks.hosts.slurm.test_runs import ended, on_slurm, started, the_round, trains, until
from tests.run_benchmarks.process_table import pids_with
from tests.run_benchmarks.whole_run import REAL_TRAINING, WholeRun, make_whole_run
from tests.slurm.fixtures import need_control_groups
from tests.slurm.slurm import Slurm

PATIENCE_S = 120.0
# It waits for a file `go` beside its data, and tells true times.
TRAINING = """\
import sys, time
from pathlib import Path

from utils.events import Event, EventName, format_line


def log(name, **value):
    print(format_line(Event(name, value, time_ms=int(time.time() * 1000))), flush=True)


log(EventName.INIT_START)
log(EventName.TRAIN_START, max_steps=10)
begin = time.time()
log(EventName.STEP_END, global_steps=1, loss=2.0)
time.sleep(0.05)
while not Path(sys.argv[sys.argv.index("--data_dir") + 1], "go").exists():
    time.sleep(0.05)
took = time.time() - begin
log(EventName.TRAIN_END)
log(EventName.FINISHED, converged=True, metric="accuracy", final_accuracy=0.6, num_trained_samples=100,
    raw_train_time=took, no_eval_time=took, pure_compute_time=took, e2e_time=took, failed_checkpoints=0)
"""
# As Slurm 22.05 printed it of a job that was suspended for 5 s and then for 4, at the moments that are named.
RECORD = (
    "JobId=1 JobState={} RunTime={} StartTime=2026-11-29T09:50:38 EndTime=2026-11-29T10:50:38 NodeList=n1 "
)
MOMENTS = {
    "before": (RECORD + "SuspendTime=None SecsPreSuspend=0", "RUNNING", 0),
    "goes on": (RECORD + "SuspendTime=2026-11-29T09:50:47 SecsPreSuspend=4", "RUNNING", 5),
    "goes on again": (RECORD + "SuspendTime=2026-11-29T09:50:54 SecsPreSuspend=7", "RUNNING", 9),
    "over": (RECORD + "SuspendTime=2026-11-29T09:50:54 SecsPreSuspend=7", "CANCELLED", 9),
    "the clock was set": (RECORD + "SuspendTime=2026-11-29T09:50:40 SecsPreSuspend=7", "RUNNING", 0),
    "no number": (RECORD + "SuspendTime=2026-11-29T09:50:54 SecsPreSuspend=soon", "RUNNING", 0),
}


@pytest.fixture(scope="module")
def shared_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """One that has all that a job started stand still, as most sites do."""
    need_control_groups()
    prefix = f"n{uuid.uuid4().hex[:8]}x"
    folder = tmp_path_factory.mktemp("slurm")
    cluster = Slurm(folder, nodes=1, prefix=prefix, control_groups=True)
    with cluster.running():
        yield cluster


@pytest.fixture
def run(slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    run = make_whole_run(tmp_path, free_port(), monkeypatch)
    run.tree.write("benchmarks/toy/pytorch/run_pretraining.py", TRAINING)
    yield run
    assert run.files_left() == []
    assert pids_with(str(tmp_path)) == []


def let_go(run: WholeRun) -> None:
    (run.folder / "data" / "go").touch()


def suspend(slurm: Slurm, job: int, seconds: float) -> None:
    """Let the job stand still for so long; Slurm's times are of whole seconds."""
    slurm.run("scontrol", "suspend", str(job))
    time.sleep(seconds)
    slurm.run("scontrol", "resume", str(job))


def assert_is_marked(run: WholeRun) -> None:
    """What a reader of the round's figures sees."""
    result = the_round(run)
    job, figures = result["allocation"], result["figures"]
    assert result["verdict"] == "CONVERGED" and job["suspended_s"] >= 2
    caveat = f"job {job['job']} was suspended for {job['suspended_s']:g} s"
    for name in ("e2e_time", "raw_train_time", "p_train", "round_time"):
        assert caveat in figures[name]["caveat"], name
    assert not figures["samples"]["caveat"] and not figures["acc"]["caveat"]
    assert result["rules"]["stamp"] is None and caveat in result["rules"]["doubt"]
    assert [note for note in result["notes"] if note.startswith(f"{caveat} while the round had it")]


def test_a_round_whose_job_was_suspended_says_so(slurm: Slurm, run: WholeRun) -> None:
    on_slurm(run)
    with started(run) as program:
        trains(run)
        (job,) = slurm.jobs()
        suspend(slurm, job, 3)  # between two looks
        let_go(run)
        assert ended(program) == 0
    assert_is_marked(run)


def test_a_round_that_nobody_watched_while_its_job_was_suspended_says_so(slurm: Slurm, run: WholeRun) -> None:
    on_slurm(run)
    with started(run) as program:
        trains(run)
        program.kill()
    (job,) = slurm.jobs()
    suspend(slurm, job, 3)
    let_go(run)
    with started(run, "resume") as program:
        assert ended(program) == 0
    assert_is_marked(run)


def test_a_round_that_was_not_suspended_is_closed(slurm: Slurm, run: WholeRun) -> None:
    on_slurm(run)
    let_go(run)
    with started(run) as program:
        assert ended(program) == 0
    result = the_round(run)
    assert result["allocation"]["suspended_s"] == 0 and not result["figures"]["e2e_time"]["caveat"]
    assert result["rules"]["stamp"] == "closed"


def test_a_controller_that_stood_still_in_its_own_job_takes_no_training_for_hung(
    slurm: Slurm, run: WholeRun
) -> None:
    run.tree.configure(cluster_conf=f'HOSTS = "slurm"\nMASTER_PORT = {free_port()}\n')
    run.configure("RETRIES = 0\nHANG_TIMEOUT = 14\n")
    python = run.folder / "python"
    command = " ".join(f"'{word}'" for word in run.command())
    python.write_text(f'#!/bin/sh\nshift\nexec {command} "$@"\n')
    python.chmod(0o755)
    shutil.copy(REAL_TRAINING / "run_benchmarks/config/flagperf.sbatch", run.folder)
    log = run.folder / "job.log"
    batch = ["sbatch", "--parsable", "--nodes=1", f"--output={log}", "flagperf.sbatch"]
    environment = {**os.environ, "FLAGPERF_PYTHON": str(python)}
    job = subprocess.run(
        batch, cwd=run.folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    until("step", lambda: "step 1" in log.read_text() if log.exists() else False)
    suspend(slurm, int(job), 20)
    words = ("the controller stood still", "looking what its ranks are doing")
    assert until("word of it", lambda: [each for each in words if each in log.read_text()]) == [words[0]]
    time.sleep(2)  # in which it would be looked at
    let_go(run)
    slurm.wait_for_no_job()
    assert slurm.job(int(job))["ExitCode"] == "0:0", log.read_text()
    assert_is_marked(run)
    assert any("the controller stood still for" in note for note in the_round(run)["notes"])


@pytest.mark.parametrize("moment", MOMENTS)
def test_how_long_a_job_was_suspended_is_read_from_its_record(moment: str) -> None:
    record, state, expected = MOMENTS[moment]
    assert suspended_s(job_in(record.format(state, "00:00:07"))) == expected


def job_now(state: str, **times_ago: float) -> Job:
    """A job of these times, in seconds before now."""
    now = datetime.now().replace(microsecond=0)
    fields = {name: (now - timedelta(seconds=ago)).isoformat() for name, ago in times_ago.items()}
    return Job("17", state, ("n1",), "the record", {**fields, "SecsPreSuspend": "40"})


def test_of_a_job_that_is_suspended_the_time_until_now_counts() -> None:
    suspended = job_now("SUSPENDED", StartTime=100, SuspendTime=60)
    assert suspended_s(suspended) == pytest.approx(60, abs=10)


class Looked(Commands):
    """FAKE of Slurm's commands: it tells of a job as it is told, the last of them for ever."""

    def __init__(self, *jobs: Job) -> None:
        super().__init__()
        self.jobs = list(jobs)

    async def look(self, job: str) -> Job | None:
        return self.jobs.pop(0) if len(self.jobs) > 1 else self.jobs[0]

    async def accounting(self, job: str) -> list[list[str]]:
        return []

    async def down(self, nodes: Any) -> list[str]:
        return []


def test_the_end_of_a_job_that_is_suspended_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm moves it once the job goes on."""
    monkeypatch.setattr(tenure, "LOOK_S", 0.01)
    said: list[str] = []
    monkeypatch.setattr(LOGGER, "warning", said.append)
    times = {"StartTime": 100.0, "EndTime": -5.0, "SuspendTime": 60.0}
    suspended = job_now("SUSPENDED", **times)
    over = replace(suspended, state="CANCELLED")
    kept = JobTenure(Looked(suspended, suspended, over), job_now("RUNNING", StartTime=100), 120)
    assert "cancelled" in asyncio.run(kept.end()).message
    goes_on = "the round goes on, or ends, when the job does (scontrol resume 17)"
    assert said == [f"Slurm's job 17 is SUSPENDED: {goes_on}"]
    assert asyncio.run(kept.record()).suspended_s == pytest.approx(60, abs=10)  # its record has it no more
    soon = JobTenure(Looked(replace(suspended, state="RUNNING")), suspended, 120)
    assert "its time limit" in asyncio.run(soon.end()).message


def test_a_job_that_a_signal_stopped_has_no_time_of_that_but_when_it_was_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tenure, "LOOK_S", 0.5)
    stopped = Job("17", "STOPPED", ("n1",), "the record", {"SecsPreSuspend": "0"})
    kept = JobTenure(Looked(stopped, stopped, replace(stopped, state="CANCELLED")), stopped, 120)
    asyncio.run(kept.end())
    assert asyncio.run(kept.record()).suspended_s == 1.0


def test_what_was_seen_of_a_job_that_a_signal_stopped_stays_when_the_round_is_taken_up() -> None:
    job = job_now("RUNNING", StartTime=100)
    earlier = GrantedJob("slurm", "17", ("n1",), suspended_s=30.0)
    assert asyncio.run(JobTenure(Looked(job), job, 120, earlier).record()).suspended_s == 30.0


def test_a_job_that_goes_on_was_suspended_for_what_its_record_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, its record has no end, and the controller's clock may be ahead of Slurm's."""
    monkeypatch.setattr(tenure, "LOOK_S", 0.01)
    begun, suspended = job_now("RUNNING", StartTime=100), job_now("SUSPENDED", StartTime=100, SuspendTime=60)
    running = job_now("RUNNING", StartTime=100, SuspendTime=15)  # 45 s in all
    kept = JobTenure(Looked(suspended, running, replace(running, state="CANCELLED")), begun, 120)
    asyncio.run(kept.end())
    assert asyncio.run(kept.record()).suspended_s == 45.0


@pytest.mark.parametrize(
    ("state", "command"), [("SUSPENDED", "scontrol resume 17"), ("STOPPED", "scancel --signal=CONT 17")]
)
def test_what_lets_a_job_go_on_is_said(state: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tenure, "LOOK_S", 0.01)
    said: list[str] = []
    monkeypatch.setattr(LOGGER, "warning", said.append)
    job = job_now(state, StartTime=100)
    asyncio.run(
        JobTenure(Looked(job, replace(job, state="CANCELLED")), job_now("RUNNING", StartTime=100), 120).end()
    )
    assert said == [f"Slurm's job 17 is {state}: the round goes on, or ends, when the job does ({command})"]


@pytest.mark.parametrize(("known", "suspended"), [(("17", 35.0), 10.0), (("16", 35.0), 0.0), (None, 0.0)])
def test_of_a_job_that_is_kept_only_what_was_since_the_round_began_counts(
    known: tuple[str, float] | None, suspended: float
) -> None:
    """A controller that takes the round up knows by the journal what was before."""
    job = job_now("RUNNING", StartTime=100, SuspendTime=15)  # 45 s in all
    earlier = GrantedJob("slurm", known[0], ("n1",), suspended_before_s=known[1]) if known else None
    assert asyncio.run(JobTenure(Looked(job), job, 120, earlier).record()).suspended_s == suspended
