"""A job on two real hosts that lost a rank goes on from the checkpoints of the first host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import ENDLESS, Bench, containers, ending, wait_until
from utils.events import read_events

CASE = "bert:pytorch:cpu:2:1:1"
CHECKPOINTS = "/var/lib/flagperf-test/checkpoints"
# Dropout, so that the random generators of both ranks matter.
SAVING = {**ENDLESS, "log_freq": 1, "save_steps": 5, "hidden_dropout_prob": 0.1}
ENOUGH = {**SAVING, "target": 0.02, "eval_interval_samples": 640}


def _checkpoints(lab: Lab, host: int) -> list[str]:
    found = lab.ssh(host, "sh", "-c", f"find {CHECKPOINTS} -name 'step*.ckpt' 2>/dev/null || true")
    return sorted(found.stdout.split())


def _curve(folder: Path) -> dict[int, float]:
    (log,) = folder.rglob("rank0.out.log")
    steps = [event.value for event in read_events(log) if event.name == "STEP_END"]
    return {value["global_steps"]: value["loss"] for value in steps}


def test_a_job_that_lost_a_rank_goes_on_in_another_run(
    two_hosts: Lab, bench: Callable[..., Bench], data: Path
) -> None:
    run = bench(["h1", "h2"], **two_hosts.env)
    run.vendor_config("cpux2x1", SAVING)
    run.test(CASES={CASE: str(data)}, CHECKPOINT_PATH=CHECKPOINTS)
    process = run.start()
    with ending(run, process):
        wait_until(lambda: len(_checkpoints(two_hosts, 1)) == 2, lambda: process.poll() is None, "checkpoint")
        (pid,) = two_hosts.ssh(2, "pgrep", "-f", "^python3 -u .*run_pretraining.py").stdout.split()
        two_hosts.ssh(2, "kill", "-9", pid)
    cut = run.ended(process)
    assert cut.code == 1, cut.output
    assert cut.folder is not None
    assert _checkpoints(two_hosts, 2) == []  # they lie where global rank 0 ran
    newest = _checkpoints(two_hosts, 1)[-1]

    run.vendor_config("cpux2x1", ENOUGH)
    rest = run.run("--continue-from", cut.folder.name)
    assert rest.code == 0, rest.output
    assert rest.folder is not None
    (result,) = rest.rounds()
    assert result["verdict"] == "CONVERGED"
    assert result["continued"]["file"] == newest
    assert result["continued"]["run"].startswith(f"{cut.folder.name}-")
    before, after = _curve(cut.folder), _curve(rest.folder)
    assert min(after) == result["continued"]["step"] + 1
    for step in before.keys() & after.keys():  # trained twice: lost by the cut, and again
        assert abs(after[step] - before[step]) < 1e-3, step
    for host in (1, 2):
        assert containers(two_hosts, host) == ""
