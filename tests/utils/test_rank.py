"""A rank's launcher becomes the training script: its log, its exit code and its signals are the script's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from utils.rank import rank_log_name

TRAINING = Path(__file__).resolve().parents[2] / "training"
LAUNCHER_VARIABLES = ("RANK", "NODE_RANK", "GROUP_RANK", "PADDLE_TRAINER_ID", "PADDLE_NODE_RANK")


def start(log_dir: Path, code: str, **variables: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name not in LAUNCHER_VARIABLES}
    argv = [
        sys.executable,
        "-m",
        "utils.rank",
        "--log-dir",
        str(log_dir),
        "--",
        sys.executable,
        "-u",
        "-c",
        code,
    ]
    return subprocess.Popen(
        argv,
        env={**environment, "PYTHONPATH": str(TRAINING), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(log_dir: Path, code: str, **variables: str) -> tuple[int, str, str]:
    process = start(log_dir, code, **variables)
    stdout, stderr = process.communicate(timeout=60)
    return process.returncode, stdout, stderr


def test_both_outputs_go_to_the_ranks_log_and_nowhere_else(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr)"
    assert run(tmp_path, code, RANK="3") == (0, "", "")
    assert (tmp_path / "rank3.out.log").read_text() == "out\nerr\n"


def test_exit_code_is_the_scripts(tmp_path: Path) -> None:
    assert run(tmp_path, "raise SystemExit(7)", RANK="0")[0] == 7


def test_killed_script_is_seen_as_killed(tmp_path: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert run(tmp_path, code, RANK="0")[0] == -signal.SIGKILL


def test_script_has_the_launchers_process_id(tmp_path: Path) -> None:
    """No process stands between: a signal to the rank is a signal to the script."""
    process = start(tmp_path, "import os; print(os.getpid())", RANK="0")
    process.communicate(timeout=60)
    assert (tmp_path / "rank0.out.log").read_text().strip() == str(process.pid)


@pytest.mark.parametrize(
    ("variables", "log", "node_rank"),
    [
        ({"RANK": "5", "GROUP_RANK": "1"}, "rank5.out.log", "1"),  # torchrun
        ({"PADDLE_TRAINER_ID": "2", "PADDLE_NODE_RANK": "1"}, "rank2.out.log", "1"),
        ({"RANK": "4", "NODE_RANK": "2", "GROUP_RANK": "9"}, "rank4.out.log", "2"),
        ({}, "rank0.out.log", "0"),
    ],
)
def test_ranks_of_each_launcher(tmp_path: Path, variables: dict[str, str], log: str, node_rank: str) -> None:
    assert run(tmp_path, "import os; print(os.environ['NODE_RANK'])", **variables)[0] == 0
    assert (tmp_path / log).read_text().strip() == node_rank


def test_second_start_adds_to_the_log(tmp_path: Path) -> None:
    for word in ("one", "two"):
        run(tmp_path, f"print('{word}')", RANK="0")
    assert (tmp_path / "rank0.out.log").read_text() == "one\ntwo\n"


def test_wrong_use_says_what_is_right() -> None:
    environment = {**os.environ, "PYTHONPATH": str(TRAINING)}
    argv = [sys.executable, "-m", "utils.rank", "--", "true"]
    completed = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert completed.returncode == 1
    assert "usage: python3 -m utils.rank --log-dir DIR -- ARGV..." in completed.stderr


def test_log_name() -> None:
    assert rank_log_name(12) == "rank12.out.log"
