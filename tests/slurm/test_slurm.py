"""The tests' Slurm does what tests rely on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.run_benchmarks.process_table import pids_with
from tests.slurm.fixtures import need_slurm
from tests.slurm.slurm import Slurm

CHECKOUT = Path(__file__).resolve().parents[2]
OWNER = """
import sys, time
from pathlib import Path
from tests.slurm.slurm import Slurm
slurm = Slurm(Path(sys.argv[1]), nodes=1)
slurm.up()
slurm.submit(f"sleep 300; : {sys.argv[1]}")
while not slurm.run("squeue", "--noheader", "--states=R"):
    time.sleep(0.05)
print("up", flush=True)
time.sleep(300)
"""


def step(slurm: Slurm, job: int, node: str, *argv: str) -> str:
    return slurm.run("srun", "--overlap", f"--jobid={job}", f"--nodelist={node}", "-N1", "-n1", *argv)


def test_a_step_runs_on_the_node_that_it_names_and_sees_the_jobs_devices(slurm: Slurm) -> None:
    job = slurm.allocate("--nodes=2", "--gres=gpu:2")
    for node in ("n1", "n2"):
        shown = step(slurm, job, node, "sh", "-c", "hostname; echo $CUDA_VISIBLE_DEVICES")
        assert shown.split() == [node, "0,1"]


def test_a_killed_node_takes_its_processes_with_it_and_comes_back(slurm: Slurm, tmp_path: Path) -> None:
    job = slurm.submit(f"touch {tmp_path}/runs; sleep 300", "--nodelist=n2", "--no-requeue")
    slurm.wait_for_job(job, "RUNNING")
    while not (tmp_path / "runs").exists():
        time.sleep(0.05)
    slurm.kill_node("n2")
    slurm.wait_for({"n1": "idle", "n2": "down*"})
    slurm.wait_for_job(job, "NODE_FAIL")
    slurm.start_node("n2")
    assert slurm.states() == {"n1": "idle", "n2": "idle", "n3": "idle"}


def test_a_job_outlives_the_controller(slurm: Slurm) -> None:
    job = slurm.allocate()
    slurm.stop_controller()
    assert slurm.states() == {}
    slurm.start_controller()
    slurm.wait_for({"n2": "idle", "n3": "idle"})
    assert slurm.jobs() == {job: "RUNNING"}
    assert step(slurm, job, "n1", "hostname").strip() == "n1"


def test_preemption_cancels_a_job_of_the_spare_partition(slurm: Slurm) -> None:
    spare = slurm.allocate("--partition=spare", "--nodes=3", "--exclusive", "--no-requeue")
    slurm.allocate("--partition=batch", "--nodes=3", "--exclusive")
    assert slurm.job(spare)["JobState"] == "PREEMPTED"


def test_everything_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    need_slurm()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        env=os.environ,
    )
    try:
        assert owner.stdout is not None and owner.stdout.readline() == b"up\n"
        assert pids_with(str(tmp_path))
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    deadline = time.monotonic() + 60
    while (pids := pids_with(str(tmp_path))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert pids == []
