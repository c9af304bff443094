"""Whole runs in a pod: the real kubectl and `run.py`, a fake API server, and this machine as the pod."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.full_disk import FULL
from run_benchmarks.hosts.kubernetes.manifests import ALIVE
from tests.fakes.kubelets import Processes
from tests.fakes.kubernetes_api import OK, KubernetesApi
from tests.live_files import any_says
from tests.ports import free_port
from tests.run_benchmarks.process_table import pids_with
from tests.run_benchmarks.test_full_disk import FILLS
from tests.run_benchmarks.transports.conftest import need_kubectl
from tests.run_benchmarks.whole_run import SCRIPT, WholeRun, make_whole_run

PATIENCE_S = 180.0
# FAKE: the names that the cluster's Service gives to pods.
NAMES = """\
#!/bin/sh
case "$2" in flagperf-*) echo "192.0.2.1 STREAM $2";; *) exec /usr/bin/getent "$@";; esac
"""
# Trains until it is let go, and has converged then; a test that is killed does not leave it for ever.
WAITING = SCRIPT.replace(
    "time.sleep(600)",
    'go, end = Path(sys.argv[sys.argv.index("--data_dir") + 1], "go"), time.monotonic() + 300\n'
    "    while not go.exists() and time.monotonic() < end: time.sleep(0.1)",
).replace('converged=behaviour == "converge"', "converged=True")


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesApi]:
    need_kubectl()
    with KubernetesApi(Processes()).serving() as cluster:
        monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig(tmp_path / "kubeconfig")))
        yield cluster
    Path(ALIVE).unlink(missing_ok=True)
    for pid in pids_with(str(tmp_path)):  # what ran in a pod that was deleted
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def run(api: KubernetesApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WholeRun:
    made = make_whole_run(tmp_path, free_port(), monkeypatch)
    made.tree.configure(
        cluster_conf=f'HOSTS = kubernetes(namespace="bench", image="toy:1")\nMASTER_PORT = {free_port()}\n'
    )
    made.tree.write("benchmarks/toy/pytorch/run_pretraining.py", WAITING)
    made.configure("RETRIES = 0\n")
    made.behave("hang")
    return made


def until(holds: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert process.poll() is None and time.monotonic() < end, process.communicate()[0]
        time.sleep(0.1)


def training(run: WholeRun) -> subprocess.Popen[str]:
    """A run whose task has said that it trains, and that has it in its journal."""
    process = subprocess.Popen(run.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until(lambda: any_says("STEP_END", run.host, "runs/**/rank0.out.log"), process)
    until(lambda: '"stage": "train"' in (run.result / "journal.jsonl").read_text(), process)
    return process


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, output


def test_a_pod_that_is_deleted_ends_its_round_in_the_clusters_words(
    api: KubernetesApi, run: WholeRun
) -> None:
    process = training(run)
    (pod,) = api.of_kind("pods")
    api.delete("pods", pod["metadata"]["name"])
    code, output = end_of(process)
    assert code == 1, output
    (result,) = run.summary["rounds"]
    failure = result["failure"]
    assert (result["verdict"], failure["class"]) == ("FAILED", "allocation_cancelled")
    assert (
        pod["metadata"]["name"] in failure["evidence"] and "it is not there any more" in failure["evidence"]
    )
    notes = "\n".join([*run.summary["notes"], *result["notes"]])
    assert "may be left" not in notes and "still lie" not in notes
    # this machine is the pod, and sees its files
    assert (run.result / "toy:pytorch:X1:1:1:1/round1/node-0_noderank0/rank0.out.log").stat().st_size
    assert not api.objects


def test_an_interrupted_run_leaves_nothing(api: KubernetesApi, run: WholeRun) -> None:
    process = training(run)
    process.send_signal(signal.SIGTERM)
    code, output = end_of(process)
    assert code == 130, output
    (result,) = run.summary["rounds"]
    assert result["verdict"] == "INTERRUPTED"
    assert (run.result / "toy:pytorch:X1:1:1:1/round1/node-0_noderank0/rank0.out.log").stat().st_size
    assert not api.objects and run.units_left() == []


def test_a_run_whose_controller_was_killed_goes_on_in_its_pods(api: KubernetesApi, run: WholeRun) -> None:
    process = training(run)
    process.kill()
    end_of(process)
    made = len(api.applied)
    assert len(api.of_kind("pods")) == 1
    (run.folder / "data" / "go").touch()
    resumed = subprocess.Popen(
        run.command("resume"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    code, output = end_of(resumed)
    assert code == 0, output
    (result,) = run.summary["rounds"]
    assert result["verdict"] == "CONVERGED" and result["hosts"] == ["node-0"]
    assert len(api.applied) == made and not api.objects and run.units_left() == []


@pytest.mark.parametrize("rank", [0, 1])
def test_a_run_that_lost_a_pod_while_it_had_no_controller_brings_home_what_the_other_has(
    api: KubernetesApi, run: WholeRun, rank: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tmp_path / "names" / "getent"
    names.parent.mkdir()
    names.write_text(NAMES)
    names.chmod(0o755)
    monkeypatch.setenv("PATH", f"{names.parent}:{os.environ['PATH']}")
    run.tree.write("acme/toy-pytorch/config/config_X1x2x1.py", "")
    run.configure(f'RETRIES = 0\nCASES = {{"toy:pytorch:X1:2:1:1": "{run.folder}/data"}}\n')
    process = training(run)
    process.kill()
    end_of(process)
    lost = api.of_kind("pods")[rank]["metadata"]["name"]
    api.delete("pods", lost)
    code, output = taken_up(run, "resume")
    assert code == 1, output
    (result,) = run.summary["rounds"]
    failure = result["failure"]
    assert (result["verdict"], failure["class"]) == ("FAILED", "allocation_cancelled"), output
    assert lost.rpartition("-")[0] in failure["evidence"]
    other = f"toy:pytorch:X1:2:1:1/round1/node-{1 - rank}_noderank{1 - rank}/rank{1 - rank}.out.log"
    assert (run.result / other).stat().st_size
    assert not api.objects and run.units_left() == []


def test_a_pod_whose_logs_have_no_room_stays_until_the_run_is_taken_up(
    api: KubernetesApi, disk: Path, run: WholeRun
) -> None:
    filler = disk / "filler"
    full = SCRIPT.replace("time.sleep(0.05)\n", FILLS.format(filler=str(filler)), 1)
    run.tree.write("benchmarks/toy/pytorch/run_pretraining.py", full)
    run.configure(f'CASES = {{"toy:pytorch:X1:1:1:2": "{run.folder}/data"}}\n')
    run.behave("converge")
    process = subprocess.Popen(run.command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    code, output = end_of(process)
    assert code == 1 and f"(controller_error): {FULL}" in output, output
    assert "take the run up within 1800 s" in output and "round 2 of 2" not in output
    assert "it still lies in" in output and "may be left" not in output
    assert len(api.of_kind("pods")) == 1 and not list(disk.rglob("result.json"))

    filler.unlink()
    filler.mkdir()  # no file, and so the task fills the disk no more
    resumed = subprocess.Popen(
        run.command("resume"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    code, output = end_of(resumed)
    filler.rmdir()
    assert code == 0, output
    assert [each["verdict"] for each in run.summary["rounds"]] == ["CONVERGED", "CONVERGED"]
    assert not api.objects


def test_a_run_whose_controller_was_killed_is_stopped_in_order(api: KubernetesApi, run: WholeRun) -> None:
    process = training(run)
    process.kill()
    end_of(process)
    stopped = subprocess.Popen(
        run.command("stop", run.result.name), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    code, output = end_of(stopped)
    assert code == 0, output
    (result,) = run.summary["rounds"]
    assert result["verdict"] == "INTERRUPTED"
    assert (run.result / "toy:pytorch:X1:1:1:1/round1/node-0_noderank0/rank0.out.log").stat().st_size
    assert not api.objects and run.units_left() == []


def taken_up(run: WholeRun, *words: str) -> tuple[int, str]:
    return end_of(
        subprocess.Popen(run.command(*words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    )


@pytest.mark.parametrize(("verb", "verdict"), [("resume", "CONVERGED"), ("stop", "INTERRUPTED")])
def test_a_run_is_not_taken_up_where_nobody_tells_of_its_pods(
    api: KubernetesApi, run: WholeRun, verb: str, verdict: str
) -> None:
    process = training(run)
    process.kill()
    end_of(process)
    if verb == "resume":
        (run.folder / "data" / "go").touch()
    there = set(api.objects)
    api.errors["GET", "pods"] = [401]
    code, output = taken_up(run, verb, run.result.name)
    assert code == 2 and "then do this again: the run was left as it is" in output, output
    assert set(api.objects) == there and not (run.result / "summary.json").exists()
    api.errors["GET", "pods"] = [500, OK]
    code, output = taken_up(run, verb, run.result.name)
    assert code == 0 and "trying again in about" in output, output
    (result,) = run.summary["rounds"]
    assert (result["verdict"], result["hosts"]) == (verdict, ["node-0"]), output
    assert (run.result / "toy:pytorch:X1:1:1:1/round1/node-0_noderank0/rank0.out.log").stat().st_size
    assert not api.objects and run.units_left() == []


@pytest.mark.parametrize("verb", ["resume", "stop"])
def test_who_waits_in_vain_for_word_of_its_pods_is_let_go_by_a_signal(
    api: KubernetesApi, run: WholeRun, verb: str
) -> None:
    process = training(run)
    process.kill()
    end_of(process)
    there = set(api.objects)
    api.errors["GET", "pods"] = [500]
    asked = subprocess.Popen(
        run.command(verb, run.result.name), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    until(lambda: '"round_resumed"' in (run.result / "journal.jsonl").read_text(), asked)
    asked.send_signal(signal.SIGINT)
    code, output = end_of(asked)
    assert code == 130 and "when SIGINT ended the waiting for them" in output, output
    assert "it was left as it is" in output and output.endswith("interrupted by SIGINT\n"), output
    assert set(api.objects) == there and not (run.result / "summary.json").exists()
    api.errors.clear()
    code, output = taken_up(run, "stop", run.result.name)
    assert code == 0 and run.summary["rounds"][0]["verdict"] == "INTERRUPTED", output
    assert not api.objects and run.units_left() == []


def test_a_stop_that_leaves_pods_is_no_success(api: KubernetesApi, run: WholeRun) -> None:
    process = training(run)
    process.kill()
    end_of(process)
    api.errors["DELETE", "jobs"] = [403]
    code, output = taken_up(run, "stop", run.result.name)
    assert code == 3 and "the hosts could not be let go of" in output and " cleanup " in output, output
    assert run.summary["rounds"][0]["verdict"] == "INTERRUPTED" and api.of_kind("pods")
    api.errors.clear()
    code, output = taken_up(run, "cleanup", run.summary["uid"], "--yes")
    assert code == 0 and not api.objects, output
