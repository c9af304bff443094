"""Reports of FlagPerf's launcher and of Paddle's ranks, as paddle 3.3 really wrote them (data/paddle)."""

from __future__ import annotations

from pathlib import Path

import pytest

from run_benchmarks.frameworks import open_framework
from run_benchmarks.frameworks.base import LaunchJob

DATA = Path(__file__).parent / "data" / "paddle"
PADDLE = open_framework("paddle_3.3")


def read(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def _job(nnodes: int, hosts: tuple[str, ...]) -> LaunchJob:
    return LaunchJob(
        nnodes=nnodes,
        nproc=2,
        master_addr="10.1.2.3" if nnodes > 1 else "127.0.0.1",
        master_port=29501,
        log_dir="/logs/host_noderank1",
        script=("/tree/run_pretraining.py", "--data_dir", "/data set"),
        python="/opt/python3",
        hosts=hosts,
    )


def _variables(argv: tuple[str, ...]) -> dict[str, str]:
    words = [argv[place + 1] for place, word in enumerate(argv) if word == "--set"]
    return dict(word.partition("=")[::2] for word in words)


def test_launch_argv_is_the_launch_contract() -> None:
    argv = PADDLE.launch_argv(_job(2, ("10.1.2.3", "10.1.2.4")), 1)
    nodes = "--nnodes 2 --node-rank 1 --nproc 2 --master-addr 10.1.2.3 --master-port 29501"
    launcher = f"/opt/python3 -m utils.node {nodes} --log-dir /logs/host_noderank1".split()
    script = ("--", "/opt/python3", "-u", "/tree/run_pretraining.py", "--data_dir", "/data set")
    assert argv[: len(launcher)] == tuple(launcher)
    assert argv[-len(script) :] == script
    variables = _variables(argv)
    assert variables["PADDLE_MASTER"] == "10.1.2.3:29501"
    endpoints = "10.1.2.3:29501,10.1.2.3:29502,10.1.2.4:29501,10.1.2.4:29502"
    assert variables["PADDLE_TRAINER_ENDPOINTS"] == endpoints
    assert variables["PADDLE_CURRENT_ENDPOINT"] == "10.1.2.4:{own_port}"
    assert variables["PADDLE_TRAINER_ID"] == "{rank}"


def test_one_node_is_its_own_master() -> None:
    variables = _variables(PADDLE.launch_argv(_job(1, ("localhost",)), 0))
    assert variables["PADDLE_TRAINER_ENDPOINTS"] == "127.0.0.1:29501,127.0.0.1:29502"
    assert variables["PADDLE_CURRENT_ENDPOINT"] == "127.0.0.1:{own_port}"


@pytest.mark.parametrize(
    ("log", "failed"),
    [
        ("ok/start.log", ()),
        ("raise/start.log", ((1, 1),)),
        ("kill/start.log", ((1, -9),)),
        ("segv/start.log", ((1, -11),)),
        ("abort/start.log", ((1, -6),)),
        # both failed by themselves, one of them just after it had been told to stop
        ("both/start.log", ((1, 1), (0, 1))),
        ("hang/start.log", ((0, 1),)),
        ("two_raise/n0/start.log", ((0, 1),)),
        ("two_raise/n1/start.log", ((1, 1),)),
        ("master_gone/n0/start.log", ((0, -9),)),
        ("backward_lost/n0/start.log", ((0, -6),)),
        ("term/n0/start.log", ()),
    ],
)
def test_failed_ranks(log: str, failed: tuple[tuple[int, int], ...]) -> None:
    assert PADDLE.failed_ranks(read(log)) == failed


@pytest.mark.parametrize(
    "log",
    [
        "hang/rank0.out.log",
        "two_raise/n0/rank0.out.log",
        "two_kill/n0/rank0.out.log",
        "master_gone/n1/rank1.out.log",
        "store_lost/n1/rank1.out.log",
        "backward_lost/n0/rank0.out.log",  # thrown in the backward pass, where Paddle can only abort
        "term/n1/rank1.out.log",
    ],
)
def test_a_rank_that_lost_its_peer_is_secondary(log: str) -> None:
    assert PADDLE.is_secondary_failure(read(log))


@pytest.mark.parametrize(
    "log",
    [
        "raise/rank1.out.log",
        "kill/rank1.out.log",
        "segv/rank1.out.log",
        "abort/rank1.out.log",
        "both/rank0.out.log",
        "two_raise/n1/rank1.out.log",
    ],
)
def test_a_rank_that_failed_by_itself_is_not_secondary(log: str) -> None:
    assert not PADDLE.is_secondary_failure(read(log))


@pytest.mark.parametrize(
    ("tail", "secondary"),
    [
        (
            "Traceback (most recent call last):\n  x\nTimeoutError: no answer within 60 s ([Errno 111] refused)\n\n"
            "The above exception was the direct cause of the following exception:\n\n"
            "Traceback (most recent call last):\n  y\nutils.errors.FlagPerfError: 10.0.0.1:29501: rank 1 of 2 "
            "cannot join the gloo process group: no answer within 60 s",
            True,
        ),
        (
            "Traceback (most recent call last):\n  x\nutils.errors.FlagPerfError: this rank's process: rank 0 "
            "waited 600 s for 1 other ranks\n    -> see what holds them up",
            True,
        ),
        ("Traceback (most recent call last):\n  x\nOSError: NCCL error(6), ncclRemoteError. ", True),
        # the user's own download, not a peer of ours
        ("Traceback (most recent call last):\n  x\nConnectionResetError: Connection reset by peer", False),
        ("", False),
    ],
)
def test_secondary_failures_that_were_not_recorded(tail: str, secondary: bool) -> None:
    """These texts are the driver's own and NCCL's."""
    assert PADDLE.is_secondary_failure(tail) is secondary


@pytest.mark.parametrize("log", ["ok/rank0.out.log", "abort/rank1.out.log", "kill/rank1.out.log"])
def test_a_crash_is_not_an_abort_at_exit(log: str) -> None:
    assert not PADDLE.aborted_at_exit(read(log))
