"""Failure is a result: what breaks on two real hosts, and what the run says of it and leaves behind."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import (
    ENDLESS,
    QUICK,
    Bench,
    Ended,
    containers,
    ending,
    run_folder,
    wait_until,
)
from tests.run_benchmarks.e2e.pair import ENDLESS_STEPS, write_pair
from tests.run_benchmarks.faults.seen import Seen, fault

CASE, PAIR = "bert:pytorch:cpu:2:1:1", "pair:pytorch:cpu:2:1:1"
TRAINING_GOES_ON = "samples/s"
# How a host that is lost is told from one that is lost in another way.
LOOKS = {"kill": "refuses connections", "cut": "not even to TCP|no route", "freeze": "takes a TCP connection"}
MakeBench = Callable[..., Bench]


@pytest.fixture
def endless(two_hosts: Lab, bench: MakeBench, data: Path) -> Bench:
    """A case on two hosts that never ends by itself."""
    run = bench(["h1", "h2"], **two_hosts.env)
    run.vendor_config("cpux2x1", ENDLESS)
    run.test(CASES={CASE: str(data)})
    return run


@pytest.fixture
def endless_pair(endless: Bench, data: Path) -> Bench:
    """The same with ranks that only talk to each other."""
    write_pair(endless.training, "cpu", "cpu", ENDLESS_STEPS)
    endless.test(CASES={PAIR: str(data)})
    return endless


def _only_round(ended: Any) -> dict[str, Any]:
    (result,) = ended.rounds()
    return dict(result)


def _kill_the_rank(lab: Lab, host: int) -> None:
    (pid,) = lab.ssh(host, "pgrep", "-f", "^python3 -u .*run_pretraining.py").stdout.split()
    lab.ssh(host, "kill", "-9", pid)


@fault("rank-killed")
def test_a_killed_rank_ends_its_round_and_the_next_case_goes_on(
    two_hosts: Lab, bench: MakeBench, data: Path, seen: Seen
) -> None:
    run = bench(["h1", "h2"], **two_hosts.env)
    run.vendor_config("cpux2x1", ENDLESS)
    run.vendor_config("cpux1x1", QUICK)
    run.test(CASES={CASE: str(data), "bert:pytorch:cpu:1:1:1": str(data)})
    process = run.start()
    with ending(run, process):
        run.wait_for_log(process, TRAINING_GOES_ON)
        _kill_the_rank(two_hosts, 2)
        seen.made()
    ended = run.ended(process)

    seen.run(ended.folder)
    assert ended.code == 1, ended.output
    broken, whole = ended.rounds()
    assert broken["verdict"] == "FAILED"
    failure = broken["failure"]
    assert (failure["stage"], failure["host"], failure["class"]) == ("train", "h2", "rank_killed"), failure
    assert "rank 1" in failure["message"]
    assert whole["verdict"] == "CONVERGED"
    for host in (1, 2):
        assert containers(two_hosts, host) == ""
    assert ended.folder is not None
    # The logs of both nodes are there all the same.
    logs = {path.name for path in (ended.folder / CASE / "round1").rglob("rank*.out.log")}
    assert logs == {"rank0.out.log", "rank1.out.log"}


@pytest.mark.parametrize(
    ("breakage", "job", "case"),
    [
        pytest.param("kill", "endless", CASE, id="kill", marks=fault("kill")),
        pytest.param("cut", "endless_pair", PAIR, id="cut", marks=fault("cut")),
        pytest.param("freeze", "endless_pair", PAIR, id="freeze", marks=fault("freeze")),
    ],
)
def test_a_lost_host_ends_the_round_and_the_other_is_freed(
    breakage: str, job: str, case: str, two_hosts: Lab, request: pytest.FixtureRequest, seen: Seen
) -> None:
    """A rank whose peer is killed with its host sees the end of its connection; of the others it hears no more."""
    endless: Bench = request.getfixturevalue(job)
    endless.cluster(HOSTS=["h1", "h2"], HOST_LOST_AFTER=5, SSH_CONNECT_TIMEOUT=3)
    process = endless.start()
    with ending(endless, process):
        endless.wait_for_log(process, TRAINING_GOES_ON)
        getattr(two_hosts, breakage)(2)
        seen.made()
    ended = endless.ended(process)
    seen.run(ended.folder)

    assert ended.code == 1, ended.output
    result = _only_round(ended)
    assert result["verdict"] == "UNREACHABLE", result["failure"]
    assert result["failure"]["host"] == "h2"
    assert result["failure"]["class"] == "host_unreachable"
    evidence = result["failure"]["evidence"]
    assert re.search(LOOKS[breakage], evidence), evidence
    if breakage != "kill":  # of which the peer hears, and ends
        assert "longer than HOST_LOST_AFTER = 5 s" in result["failure"]["message"]
    (command,) = (note.partition(": ")[2] for note in result["notes"] if "may be left on h2" in note)
    assert containers(two_hosts, 1) == ""
    assert ended.folder is not None
    assert (ended.folder / case / "round1" / "h1_noderank0" / "rank0.out.log").is_file()
    # Once the host is back, the command removes, as it stands, what could not be removed before.
    {"kill": two_hosts.start, "cut": two_hosts.heal, "freeze": two_hosts.thaw}[breakage](2)
    cleaned = subprocess.run(
        ["sh", "-c", command], cwd="/", env=endless.env, capture_output=True, text=True, check=False
    )
    assert cleaned.returncode == 0, cleaned.stderr
    assert f"h2: removed flagperf-{ended.uid()}" in cleaned.stdout
    assert containers(two_hosts, 2) == ""


@fault("sessions")
def test_a_short_loss_of_contact_is_not_the_end(
    two_hosts: Lab, bench: MakeBench, data: Path, seen: Seen
) -> None:
    run = bench(["h1", "h2"], **two_hosts.env)
    run.vendor_config("cpux2x1", {**QUICK, "target": 0.9, "max_steps": 60, "eval_interval_samples": 3200})
    run.test(CASES={CASE: str(data)})
    process = run.start()
    with ending(run, process):
        run.wait_for_log(process, TRAINING_GOES_ON)
        # The sessions die, the containers and their network go on.
        two_hosts.ssh(2, "sh", "-c", "pkill -9 -f 'sshd: root' || true", check=False)
        seen.made()
        run.wait_for_log(process, "contact is lost")
    ended = run.ended(process)

    assert _only_round(ended)["verdict"] == "NOT_CONVERGED", ended.output
    seen.run(ended.folder)
    assert "contact is back" in ended.output


def _assert_interrupted(ended: Ended, lab: Lab) -> None:
    """It says so, has the logs, and nothing of it is left on the hosts."""
    assert ended.code == 130, ended.output
    assert _only_round(ended)["verdict"] == "INTERRUPTED"
    assert ended.folder is not None
    for rank in (0, 1):
        node = ended.folder / PAIR / "round1" / f"h{rank + 1}_noderank{rank}"
        assert (node / f"rank{rank}.out.log").is_file()
        assert containers(lab, rank + 1) == ""
        assert run_folder(lab, rank + 1, ended.uid()) == ""


@fault("sigterm-hosts")
def test_sigterm_stops_and_removes_everything(two_hosts: Lab, endless_pair: Bench, seen: Seen) -> None:
    process = endless_pair.start()
    with ending(endless_pair, process):
        endless_pair.wait_for_log(process, TRAINING_GOES_ON)
        process.send_signal(signal.SIGTERM)
        seen.made()
    ended = endless_pair.ended(process)
    _assert_interrupted(ended, two_hosts)
    seen.run(ended.folder)


def test_an_image_that_does_not_build_fails_its_rounds(two_hosts: Lab, endless: Bench) -> None:
    dockerfile = endless.training / "cpu" / "docker_image" / "pytorch" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text() + "\nRUN echo the compiler is missing; exit 7\n")
    ended = endless.run()

    assert ended.code == 1, ended.output
    failure = _only_round(ended)["failure"]
    assert (failure["stage"], failure["class"], failure["host"]) == ("image", "image_not_built", "h1")
    assert "the compiler is missing" in failure["evidence"]


def test_a_container_that_does_not_start_fails_its_round(two_hosts: Lab, endless: Bench, data: Path) -> None:
    endless.test(CASES={CASE: str(data)}, ACCE_CONTAINER_OPT=" --device=/dev/no-such-chip")
    ended = endless.run()

    assert ended.code == 1, ended.output
    failure = _only_round(ended)["failure"]
    assert (failure["stage"], failure["class"]) == ("launch", "container_not_started")
    assert "no-such-chip" in failure["evidence"]
    for host in (1, 2):
        assert containers(two_hosts, host) == ""


@fault("deadline")
def test_a_deadline_ends_a_round(two_hosts: Lab, endless_pair: Bench, data: Path, seen: Seen) -> None:
    endless_pair.test(CASES={PAIR: str(data)}, CASE_DEADLINE_HOURS=8 / 3600)
    seen.made()
    ended = endless_pair.run()

    assert ended.code == 1, ended.output
    result = _only_round(ended)
    assert result["verdict"] == "TIMED_OUT"
    assert result["failure"]["class"] == "deadline"
    seen.run(ended.folder)
    for host in (1, 2):
        assert containers(two_hosts, host) == ""


@fault("down")
def test_nothing_is_launched_where_a_host_is_down(two_hosts: Lab, endless: Bench, seen: Seen) -> None:
    two_hosts.kill(2)
    seen.made()
    ended = endless.run()
    seen.run(ended.folder)

    assert ended.code == 3, ended.output
    assert ended.rounds() == []
    reachable = ended.summary["preflight"]["h2"][0]
    assert (reachable["name"], reachable["status"]) == ("reachable", "error")
    assert "h2" in ended.output
    assert containers(two_hosts, 1) == ""


@fault("data-missing")
def test_nothing_is_launched_where_the_data_is_missing_on_one_host(
    two_hosts: Lab, endless: Bench, seen: Seen
) -> None:
    two_hosts.ssh(1, "mkdir", "-p", "/srv/bert")
    endless.test(CASES={CASE: "/srv/bert"})
    seen.made()
    ended = endless.run()
    seen.run(ended.folder)

    assert ended.code == 3, ended.output
    assert "h2: data: /srv/bert does not exist" in ended.output
    assert ended.rounds() == []


@fault("key-unknown")
def test_an_unknown_host_key_is_an_error_that_says_how_to_accept_it(
    two_hosts: Lab, endless: Bench, tmp_path: Path, seen: Seen
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    for path in (two_hosts.home / ".ssh").iterdir():
        if path.is_file() and "known_hosts" not in path.name:
            text = path.read_bytes().replace(str(two_hosts.home).encode(), str(home).encode())
            (home / ".ssh" / path.name).write_bytes(text)
            (home / ".ssh" / path.name).chmod(0o600)
    endless.env["HOME"] = str(home)
    seen.made()
    refused = endless.run()
    seen.run(refused.folder)
    assert refused.code == 3, refused.output
    assert "SSH_ACCEPT_NEW_HOST_KEYS" in refused.output

    endless.cluster(HOSTS=["h1", "h2"], SSH_ACCEPT_NEW_HOST_KEYS=True)
    accepted = endless.run("cleanup")
    assert accepted.code == 0, accepted.output


@fault("two-runs")
def test_two_runs_on_one_cluster_leave_each_other_alone_until_ctrl_c(
    two_hosts: Lab, tmp_path: Path, data: Path, seen: Seen
) -> None:
    first = Bench(tmp_path / "first", ["h1", "h2"], two_hosts.env)
    write_pair(first.training, "cpu", "cpu", ENDLESS_STEPS)
    first.test(CASES={PAIR: str(data)})
    second = Bench(tmp_path / "second", ["h1", "h2"], two_hosts.env)
    second.cluster(HOSTS=["h1", "h2"], MASTER_PORT=29601)
    write_pair(second.training, "cpu", "cpu")
    second.test(CASES={PAIR: str(data)})
    process = first.start()
    with ending(first, process):
        first.wait_for_log(process, TRAINING_GOES_ON)
        seen.made()
        ended = second.run()
        seen.run(ended.folder)
        assert ended.code == 0, ended.output
        # The second run warns of the first and takes only its own units away.
        assert "leftovers: running units" in ended.output
        wait_until(
            lambda: "task" in containers(two_hosts, 1), lambda: process.poll() is None, "the first run's task"
        )
        process.send_signal(signal.SIGINT)
    _assert_interrupted(first.ended(process), two_hosts)
