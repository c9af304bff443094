"""Whole runs on nodes of a real Slurm, with real steps, units and files; one toy script in place of training."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.live_files import live_files
from tests.ports import free_port
from tests.run_benchmarks.process_table import pids_with
from tests.run_benchmarks.whole_run import REAL_TRAINING, SCRIPT, WholeRun, make_whole_run
from tests.slurm.slurm import Slurm

PATIENCE_S = 180.0
# The toy hangs until there is a file `go` beside its data.
WAITING = SCRIPT.replace(
    "time.sleep(600)",
    'while not Path(sys.argv[sys.argv.index("--data_dir") + 1], "go").exists(): time.sleep(0.05)',
).replace('converged=behaviour == "converge"', 'converged=behaviour in ("converge", "hang")')


@pytest.fixture
def run(slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    run = make_whole_run(tmp_path, free_port(), monkeypatch)
    run.tree.write("benchmarks/toy/pytorch/run_pretraining.py", WAITING)
    yield run
    assert set(slurm.jobs().values()) <= {"COMPLETING"}  # the job of an salloc that has just ended
    assert run.files_left() == []
    assert pids_with(str(tmp_path)) == []


def on_slurm(run: WholeRun, options: str = "", more: str = "RETRIES = 0\n") -> None:
    """Let the run ask Slurm for its host."""
    run.tree.configure(cluster_conf=f"HOSTS = slurm({options})\nMASTER_PORT = {free_port()}\n")
    run.configure(more)


def until(what: str, holds: Callable[[], Any]) -> Any:
    """The first true value."""
    end = time.monotonic() + PATIENCE_S
    while not (value := holds()):
        assert time.monotonic() < end, f"there was no {what}"
        time.sleep(0.1)
    return value


@contextmanager
def started(run: WholeRun, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The run as a program of its own; where a test fails it is ended in order."""
    program = subprocess.Popen(
        run.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield program
    finally:
        if program.poll() is None:
            program.terminate()
        print(program.communicate(timeout=PATIENCE_S)[0])


def ended(program: subprocess.Popen[str]) -> int:
    return program.wait(timeout=PATIENCE_S)


def trains(run: WholeRun) -> None:
    """Wait until the toy has begun, and the round could be taken up."""
    until("rank that trains", lambda: live_files(run.host, "runs/*/*/*/round1/*/rank0.out.log"))
    until("entrance", lambda: '"stage": "train"' in (run.result / "journal.jsonl").read_text())


def kill_the_controller_of(run: WholeRun) -> None:
    """Begin the run, and kill its controller once a rank trains."""
    run.behave("hang")
    with started(run) as program:
        trains(run)
        program.kill()


def uid_of(run: WholeRun) -> str:
    return str(json.loads((run.result / "journal.jsonl").read_text().splitlines()[0])["uid"])


def cleaned_up(run: WholeRun, code: int = 0) -> str:
    """What is said when what the run has left is removed."""
    done = subprocess.run(
        run.command("cleanup", uid_of(run), "--yes"), capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def the_round(run: WholeRun) -> dict[str, Any]:
    (only,) = run.summary["rounds"]
    return dict(only)


def failure_class(run: WholeRun) -> str:
    return str(the_round(run)["failure"]["class"])


def test_a_run_has_a_job_for_its_round_which_stands_in_the_result(slurm: Slurm, run: WholeRun) -> None:
    on_slurm(run, 'time="10", gres="gpu:2"')
    with started(run) as program:
        assert ended(program) == 0
    result = the_round(run)
    assert result["verdict"] == "CONVERGED" and result["hosts"] == ["n1"]
    allocation = result["allocation"]
    assert (allocation["scheduler"], allocation["nodes"], allocation["state"]) == (
        "slurm",
        ["n1"],
        "RUNNING",  # while the round had it; that FlagPerf gave it back is no news
    )
    assert "node=1" in allocation["tres"] and allocation["per_node"].endswith("gpu:2")
    journal = [json.loads(line) for line in (run.result / "journal.jsonl").read_text().splitlines()]
    assert [each["job"] for each in journal if each["event"] == "acquired"] == [allocation["job"]]
    assert (run.result / "toy:pytorch:X1:1:1:1" / "round1" / "n1_noderank0" / "rank0.out.log").is_file()


def test_a_job_that_somebody_cancels_is_why_the_round_ended(slurm: Slurm, run: WholeRun) -> None:
    on_slurm(run)
    run.behave("hang")
    with started(run) as program:
        trains(run)
        slurm.run("scancel", *map(str, slurm.jobs()))
        assert ended(program) == 1
    result = the_round(run)
    assert result["verdict"] == "FAILED" and failure_class(run) == "allocation_cancelled"
    assert "JobState=CANCELLED" in result["failure"]["evidence"]


def test_a_round_whose_node_fails_is_run_again_on_another(slurm: Slurm, run: WholeRun) -> None:
    on_slurm(run, more="RETRIES = 1\n")
    run.behave("hang")
    with started(run) as program:
        trains(run)
        slurm.kill_node("n1")
        until("failed attempt", lambda: live_files(run.result, "*/round1.attempt1"))
        (run.folder / "data" / "go").touch()
        assert ended(program) == 0
    result = the_round(run)
    (attempt,) = result["attempts"]
    assert attempt["class"] == "node_failed" and attempt["hosts"] == ["n1"] and attempt["host"] == "n1"
    assert result["hosts"] != ["n1"]
    assert run.files_left() == [f"runs/{uid_of(run)}"]  # it is down
    assert "n1: Slurm has it as down" in cleaned_up(run, 3)
    slurm.start_node("n1")
    assert "n1: " in cleaned_up(run)


def test_a_preempted_round_queues_again(slurm: Slurm, run: WholeRun) -> None:
    on_slurm(run, 'partition="spare"', more="RETRIES = 1\n")
    run.behave("hang")
    with started(run) as program:
        trains(run)
        other = slurm.allocate("--partition=batch", "--nodes=3", "--exclusive")
        until("failed attempt", lambda: live_files(run.result, "*/round1.attempt1"))
        (run.folder / "data" / "go").touch()
        slurm.run("scancel", str(other))
        assert ended(program) == 0
    (attempt,) = the_round(run)["attempts"]
    assert attempt["class"] == "allocation_preempted"


def test_a_round_ends_before_its_job_does_and_its_logs_are_saved(slurm: Slurm, run: WholeRun) -> None:
    on_slurm(run, 'partition="short"')
    run.behave("hang")
    with started(run) as program:
        assert ended(program) == 1
    result = the_round(run)
    assert result["verdict"] == "TIMED_OUT" and failure_class(run) == "allocation_time_limit"
    log = run.result / "toy:pytorch:X1:1:1:1" / "round1" / "n1_noderank0" / "rank0.out.log"
    assert "TRAIN_START" in log.read_text()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_ended_gives_its_nodes_back(
    slurm: Slurm, run: WholeRun, number: signal.Signals
) -> None:
    on_slurm(run)
    run.behave("hang")
    with started(run) as program:
        trains(run)
        program.send_signal(number)
        assert ended(program) == 130
    assert the_round(run)["verdict"] == "INTERRUPTED"


def test_a_run_that_is_ended_in_the_queue_leaves_it(slurm: Slurm, run: WholeRun) -> None:
    others = slurm.allocate("--nodes=3", "--exclusive")
    on_slurm(run)
    with started(run) as program:
        until("job that waits", lambda: len(slurm.jobs()) == 2)
        own = max(slurm.jobs())
        listed = subprocess.run(run.command("cleanup"), capture_output=True, text=True, timeout=PATIENCE_S)
        assert f"Slurm: job {own} (PENDING)" in listed.stdout, listed.stderr
        program.send_signal(signal.SIGINT)
        assert ended(program) == 130
    assert slurm.jobs() == {others: "RUNNING"}
    slurm.run("scancel", str(others))
    slurm.wait_for_no_job()


def test_a_run_whose_controller_is_killed_goes_on_in_the_same_job(slurm: Slurm, run: WholeRun) -> None:
    on_slurm(run)
    kill_the_controller_of(run)
    (job,) = slurm.jobs()
    (run.folder / "data" / "go").touch()
    with started(run, "resume") as program:
        assert ended(program) == 0
    result = the_round(run)
    assert result["verdict"] == "CONVERGED" and result["allocation"]["job"] == str(job)
    assert any("taken up" in note for note in result["notes"])
    assert list(result["provenance"]["clock_offsets"]) == result["hosts"], "as before the ranks started"


def test_nodes_of_a_run_whose_controller_is_killed_are_given_back_with_all_that_ran_there(
    slurm: Slurm, run: WholeRun
) -> None:
    on_slurm(run, "abandoned_after=10")
    kill_the_controller_of(run)
    slurm.wait_for_no_job()
    assert run.files_left() == [f"runs/{uid_of(run)}"]  # the logs, which are nowhere else
    with started(run, "resume") as program:
        assert ended(program) == 1
    assert failure_class(run) == "allocation_ended"
    assert "heard of no controller" in the_round(run)["failure"]["message"]


def test_two_runs_at_once_have_nodes_of_their_own(
    slurm: Slurm, run: WholeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    other = make_whole_run(tmp_path / "other", free_port(), monkeypatch)
    other.tree.write("benchmarks/toy/pytorch/run_pretraining.py", WAITING)
    for each in (run, other):
        on_slurm(each)
        each.behave("hang")
    with started(run) as first, started(other) as second:
        trains(run)
        trains(other)
        for each in (run, other):
            (each.folder / "data" / "go").touch()
        assert (ended(first), ended(second)) == (0, 0)
    assert the_round(run)["hosts"] != the_round(other)["hosts"]


def test_a_job_that_slurm_would_refuse_is_refused_before_anything_is_launched(
    slurm: Slurm, run: WholeRun
) -> None:
    on_slurm(run, 'partition="nowhere"')
    done = subprocess.run(run.command(), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert "cluster_conf.py: HOSTS: a job of 1 node: sbatch" in done.stderr
    assert "invalid partition specified: nowhere" in done.stderr
    assert not (run.folder / "result").exists()


def test_an_option_that_sbatch_does_not_have_is_answered_by_where_its_options_are(
    slurm: Slurm, run: WholeRun
) -> None:
    on_slurm(run, "abandonned_after=60")
    done = subprocess.run(run.command(), capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert "unrecognized option '--abandonned-after=60'" in done.stderr
    assert "`sbatch --help` shows its options" in done.stderr


def test_the_doctor_examines_nodes_that_it_asks_for(slurm: Slurm, run: WholeRun) -> None:
    on_slurm(run)
    done = subprocess.run(run.command("doctor"), capture_output=True, text=True, timeout=PATIENCE_S)
    assert "reachable" in done.stdout and "n1" in done.stdout, done.stderr


def test_cleanup_finds_and_cancels_what_a_killed_run_has_in_the_queue(slurm: Slurm, run: WholeRun) -> None:
    on_slurm(run)
    kill_the_controller_of(run)
    (job,) = slurm.jobs()
    listed = subprocess.run(run.command("cleanup"), capture_output=True, text=True, timeout=PATIENCE_S)
    uid = listed.stdout.partition(":")[0]
    assert f"Slurm: job {job} (RUNNING)" in listed.stdout and uid.startswith("run"), listed.stderr
    journal = run.result / "journal.jsonl"
    (whole := journal.with_suffix(".whole")).write_bytes(journal.read_bytes())
    with journal.open("a") as file:
        file.write('\n{"event": "acquired", "hosts": ["n[1-9999]"]}\n')
    removed = cleaned_up(run, code=3)
    assert f"Slurm: removed job {job}\n" in removed
    assert "its nodes are not all known: entry " in removed and "'n[1-9999]' cannot be the name" in removed
    logs = run.host / "runs" / uid
    assert f"n1: its logs that were not collected stay in {logs}\n" in removed
    assert run.files_left() == [f"runs/{uid}"]
    slurm.wait_for_no_job()
    with started(run, "resume") as program:
        assert ended(program) == 2, "what that entry hides is not known"
    whole.replace(journal)
    with started(run, "resume") as program:  # which fetches them
        assert ended(program) == 1


def test_the_shipped_batch_script_runs_on_the_nodes_of_its_own_job(slurm: Slurm, run: WholeRun) -> None:
    run.tree.configure(cluster_conf=f'HOSTS = "slurm"\nMASTER_PORT = {free_port()}\n')
    python = run.folder / "python"  # FlagPerf's own, but that the tree is the test's
    words = " ".join(f"'{word}'" for word in run.command())
    python.write_text(f'#!/bin/sh\nshift\nexec {words} "$@"\n')
    python.chmod(0o755)
    shutil.copy(REAL_TRAINING / "run_benchmarks/config/flagperf.sbatch", run.folder)
    log = run.folder / "job.log"
    command = ["sbatch", "--parsable", "--nodes=1", f"--output={log}", "flagperf.sbatch"]
    environment = {**os.environ, "FLAGPERF_PYTHON": str(python)}
    job = subprocess.run(
        command, cwd=run.folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    slurm.wait_for_no_job()
    assert slurm.job(int(job))["ExitCode"] == "0:0", log.read_text()
    result = the_round(run)
    assert result["verdict"] == "CONVERGED" and result["hosts"] == ["n1"]
    assert result["allocation"]["state"] == "RUNNING"  # the job is its own, and not ended by it


@pytest.mark.parametrize("verb", ["resume", "stop"])
def test_a_job_that_slurm_has_suspended_is_left_as_it_is_by_who_takes_the_run_up(
    verb: str, slurm: Slurm, run: WholeRun
) -> None:
    on_slurm(run)
    kill_the_controller_of(run)
    (job,) = slurm.jobs()
    slurm.run("scontrol", "suspend", str(job))
    asked = subprocess.run(run.command(verb), capture_output=True, text=True, timeout=PATIENCE_S)
    assert asked.returncode == 2 and f"`scontrol resume {job}`); then do this again" in asked.stderr
    assert slurm.jobs() == {job: "SUSPENDED"}
    slurm.run("scontrol", "resume", str(job))
    with started(run, "stop") as program:
        assert ended(program) == 0
    assert the_round(run)["verdict"] == "INTERRUPTED" and the_round(run)["allocation"]["job"] == str(job)


def test_the_shipped_batch_script_says_where_it_is_to_be_called_from(tmp_path: Path) -> None:
    script = REAL_TRAINING / "run_benchmarks/config/flagperf.sbatch"
    environment = {name: value for name, value in os.environ.items() if name != "FLAGPERF_PYTHON"}
    said = subprocess.run(["bash", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert said.returncode == 2 and "submit this in training/" in said.stderr
    assert "FLAGPERF_PYTHON=" in said.stderr and "No such file" not in said.stderr


def test_the_shipped_batch_script_runs_nothing_where_its_folder_is_not(slurm: Slurm, tmp_path: Path) -> None:
    """Slurm starts it in /tmp then, which is everybody's."""
    folder, log = tmp_path / "training", tmp_path / "job.log"
    folder.mkdir()
    script = shutil.copy(REAL_TRAINING / "run_benchmarks/config/flagperf.sbatch", tmp_path)
    command = ["sbatch", "--parsable", "--nodes=1", "--begin=now+3", f"--output={log}", script]
    environment = {**os.environ, "FLAGPERF_PYTHON": "/bin/echo"}
    job = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    folder.rmdir()
    slurm.wait_for_no_job()
    assert slurm.job(int(job))["ExitCode"] == "2:0"
    said = log.read_text()
    assert "has not the folder that this was submitted in" in said and "run.py" not in said


def by_salloc(run: WholeRun, *options: str) -> subprocess.CompletedProcess[str]:
    """The run in a shell under `salloc`, which has it on this machine, and not on a node."""
    run.tree.configure(cluster_conf=f'HOSTS = "slurm"\nMASTER_PORT = {free_port()}\n')
    command = ["salloc", *options, "bash", "-c", shlex.join(run.command())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    print(done.stdout, done.stderr)
    return done


def test_a_run_under_salloc_has_the_nodes_of_its_job(slurm: Slurm, run: WholeRun) -> None:
    done = by_salloc(run, "--nodes=2", "--nodelist=n2,n3", "--exclusive", "--gres=gpu:2")
    assert done.returncode == 0
    result = the_round(run)
    assert result["verdict"] == "CONVERGED" and result["hosts"] == ["n2"]
    assert result["allocation"]["nodes"] == ["n2", "n3"]
    assert run.result.joinpath("toy:pytorch:X1:1:1:1", "round1", "n2_noderank0", "rank0.out.log").is_file()


def test_a_round_under_salloc_ends_before_its_job_does(slurm: Slurm, run: WholeRun) -> None:
    run.behave("hang")
    done = by_salloc(run, "--partition=short")
    assert done.returncode == 1
    result = the_round(run)
    assert result["verdict"] == "TIMED_OUT" and failure_class(run) == "allocation_time_limit"
    log = run.result / "toy:pytorch:X1:1:1:1" / "round1" / "n1_noderank0" / "rank0.out.log"
    assert "TRAIN_START" in log.read_text()
    assert result["allocation"]["state"] == "RUNNING"
    assert "--time" in result["failure"]["remedy"], result["failure"]["remedy"]
