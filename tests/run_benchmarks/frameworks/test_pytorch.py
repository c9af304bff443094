"""Reports of the launcher and of PyTorch's ranks, as torch 2.13 really wrote them (data/: a folder a recorded run)."""

from __future__ import annotations

from pathlib import Path

import pytest

from run_benchmarks.frameworks import open_framework
from run_benchmarks.frameworks.base import LaunchJob
from utils.errors import FlagPerfError

DATA = Path(__file__).parent / "data"
PYTORCH = open_framework("pytorch_1.8")
JOB = LaunchJob(
    nnodes=2,
    nproc=8,
    master_addr="10.1.2.3",
    master_port=29501,
    log_dir="/logs/host_noderank1",
    script=("/tree/run_pretraining.py", "--data_dir", "/data set"),
    python="/opt/python3",
)


def read(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def test_ranks_are_started_by_flagperfs_own_launcher() -> None:
    launcher = (
        "/opt/python3 -m utils.node --nnodes 2 --node-rank 1 --nproc 8 --master-addr 10.1.2.3 "
        "--master-port 29501 --log-dir /logs/host_noderank1 -- /opt/python3 -u"
    )
    expected = (*launcher.split(), "/tree/run_pretraining.py", "--data_dir", "/data set")
    assert PYTORCH.launch_argv(JOB, 1) == expected


@pytest.mark.parametrize(
    ("log", "failed"),
    [
        ("raise/start.log", ((1, 1),)),
        ("kill/start.log", ((1, -9),)),
        # its peer lost it within the moment that ranks get after what may be an abort at exit
        ("segv/start.log", ((1, -11), (0, 1))),
        ("two_raise/n0/start.log", ((0, 1),)),
        ("two_raise/n1/start.log", ((1, 1),)),
        # rank 0 only lost its peer and ended first; rank 1 was stopped and ended by its own fault all the same
        ("both/start.log", ((0, 1), (1, 1))),
        ("abort/start.log", ((1, -6), (0, -6))),
        ("term/n0/start.log", ()),
        ("master_gone/n0/start.log", ()),
    ],
)
def test_failed_ranks(log: str, failed: tuple[tuple[int, int], ...]) -> None:
    assert PYTORCH.failed_ranks(read(log)) == failed


@pytest.mark.parametrize(
    "log",
    [
        "raise/rank0.out.log",
        "kill/rank0.out.log",
        "both/rank0.out.log",
        "two_raise/n0/rank0.out.log",
        "master_gone/n1/rank1.out.log",
        "term/n1/rank1.out.log",
    ],
)
def test_a_rank_that_lost_its_peer_is_secondary(log: str) -> None:
    assert PYTORCH.is_secondary_failure(read(log))


@pytest.mark.parametrize(
    "log",
    [
        "raise/rank1.out.log",
        "kill/rank1.out.log",
        "both/rank1.out.log",
        "two_raise/n1/rank1.out.log",
        "abort/rank0.out.log",
    ],
)
def test_a_rank_that_failed_by_itself_is_not_secondary(log: str) -> None:
    assert not PYTORCH.is_secondary_failure(read(log))


@pytest.mark.parametrize(
    ("tail", "secondary"),
    [
        (
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2006, remote process exited "
            "or there was a network error, NCCL version 2.20.5\nncclRemoteError: A call failed possibly due to a "
            "network error or a remote process exiting prematurely.",
            True,
        ),
        (
            "[rank3]:[E ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=90, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600072 milliseconds",
            True,
        ),
        (
            "Traceback (most recent call last):\n  x\nRuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/"
            "unbound_buffer.cc:84] Timed out waiting 1800000ms for recv operation to complete",
            True,
        ),
        # the user's own download, not a peer of ours
        (
            "Traceback (most recent call last):\n  x\nConnectionResetError: [Errno 104] Connection reset by peer",
            False,
        ),
        # a failure of its own, and then one more while it left the group
        (
            "Traceback (most recent call last):\n  x\nValueError: bad shard\n\nDuring handling of the above "
            "exception, another exception occurred:\n\nTraceback (most recent call last):\n  y\n"
            "RuntimeError: [/pytorch/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.1]:1",
            False,
        ),
        ("", False),
    ],
)
def test_secondary_failures_of_other_backends(tail: str, secondary: bool) -> None:
    """These texts are torch's and NCCL's messages; no accelerator recorded them here."""
    assert PYTORCH.is_secondary_failure(tail) is secondary


def test_no_line_of_a_rank_takes_long_to_be_judged() -> None:
    """Many beginnings and middles of a phrase without its end: each pair of them, tried, would take minutes."""
    line = ("c10d" * 8192)[:4096] + ("recvBytes" * 8192)[:4000]
    assert not PYTORCH.is_secondary_failure(f"{line}\n" * 20)
    assert PYTORCH.is_secondary_failure(f"{line}\n" * 20 + f"{line} failed")


def test_aborted_at_exit() -> None:
    assert PYTORCH.aborted_at_exit(read("abort/rank0.out.log"))
    assert PYTORCH.aborted_at_exit(read("abort/rank1.out.log"))


def test_a_crash_is_not_an_abort_at_exit() -> None:
    abort = "terminate called without an active exception"
    step = '[PerfLog] {"event": "STEP_END", "value": {}, "metadata": {"rank": 0, "time_ms": 1}}'
    assert not PYTORCH.aborted_at_exit(f"{step}\n{abort}\n")
    assert not PYTORCH.aborted_at_exit(f"Traceback (most recent call last):\nValueError: x\n{abort}\n")
    assert not PYTORCH.aborted_at_exit(f"{abort}\nmore output\n")
    assert not PYTORCH.aborted_at_exit(read("kill/rank1.out.log"))
    assert not PYTORCH.aborted_at_exit("")


def test_unknown_framework_names_the_nearest() -> None:
    with pytest.raises(FlagPerfError, match=r"did you mean pytorch\?"):
        open_framework("pytorhc_2.1")
