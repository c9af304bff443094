"""A run that was cut off goes on from its checkpoint: Paddle, in processes of their own.

Paddle numbers the parameters of a process as they are made, and a test session has made many.
"""

from __future__ import annotations

import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.driver.arguments import LaunchArguments
from run_benchmarks.frameworks import open_framework
from run_benchmarks.frameworks.base import LaunchJob
from tests.benchmarks.bert.shard_files import write_data
from tests.benchmarks.driver.ranks import (
    TRAINING,
    arguments,
    command_line,
    environment,
    values_of,
)
from tests.benchmarks.driver.test_driver_restart import TASK, after, killing_hook, losses
from tests.ports import free_port
from utils.checkpoints import CHECKPOINT_DIR, CONTINUE_FROM
from utils.events import Event, parse_line, read_events

PADDLE = TRAINING / "benchmarks" / "bert" / "paddle"
SMALL_TASK = {
    **TASK,
    "optimizer": "adamw",
    "learning_rate": 0.01,
    "warmup_steps": 0,
    "decay_steps": 12,
    "eval_interval_samples": None,
    "eval_iter_start_samples": 0,
}


def launch_of(folder: Path, data_dir: Path, extern: Path | None = None, **settings: Any) -> LaunchArguments:
    return replace(arguments(folder, data_dir, extern, **{**SMALL_TASK, **settings}), case_dir=PADDLE)


def trained(python: str, launch: LaunchArguments, **variables: str) -> tuple[int, list[Event]]:
    """One rank in a process of its own."""
    done = subprocess.run(
        [python, *command_line(launch)[1:]],
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stdout + done.stderr
    return done.returncode, [event for line in done.stdout.splitlines() if (event := parse_line(line))]


def trained_by_two(
    python: str, logs: Path, launch: LaunchArguments, **variables: str
) -> tuple[int, list[Event]]:
    """Two ranks by the launcher; rank 0's events."""
    logs.mkdir()
    script = tuple(command_line(launch)[2:])
    argv = open_framework("paddle").launch_argv(
        LaunchJob(1, 2, "127.0.0.1", free_port(), str(logs), script, python), 0
    )
    done = subprocess.run(argv, env=environment(**variables), capture_output=True, timeout=150, check=False)
    return done.returncode, read_events(logs / "rank0.out.log")


def test_the_rest_of_a_killed_run_is_bitwise_that_of_an_unbroken_one(
    tmp_path: Path, warm_paddle: str
) -> None:
    data = write_data(tmp_path / "data")
    _, unbroken = trained(warm_paddle, launch_of(tmp_path / "whole", data, save_steps=None))
    killing = killing_hook(tmp_path / "killing", 8)
    earlier = str(tmp_path / "earlier")
    code, _ = trained(warm_paddle, launch_of(tmp_path / "cut", data, killing), **{CHECKPOINT_DIR: earlier})
    assert code == -signal.SIGKILL
    variables = {CONTINUE_FROM: earlier, CHECKPOINT_DIR: str(tmp_path / "later")}
    _, rest = trained(warm_paddle, launch_of(tmp_path / "rest", data), **variables)
    assert losses(rest) == after(6, losses(unbroken))
    assert values_of(rest, "EVALUATE")[-1]["eval_loss"] == values_of(unbroken, "EVALUATE")[-1]["eval_loss"]
    finished = values_of(rest, "FINISHED")[0]
    assert (finished["continued"]["step"], finished["num_trained_samples"]) == (6, 96)


def test_two_ranks_go_on_as_if_never_cut_off(tmp_path: Path, warm_paddle: str) -> None:
    data = write_data(tmp_path / "data")
    half = {"train_batch_size": 4}
    code, unbroken = trained_by_two(
        warm_paddle, tmp_path / "whole_logs", launch_of(tmp_path / "whole", data, save_steps=None, **half)
    )
    assert code == 0
    killing = killing_hook(tmp_path / "killing", 8)
    earlier = str(tmp_path / "earlier")
    code, _ = trained_by_two(
        warm_paddle,
        tmp_path / "cut_logs",
        launch_of(tmp_path / "cut", data, killing, **half),
        **{CHECKPOINT_DIR: earlier},
    )
    assert code != 0
    variables = {CONTINUE_FROM: earlier, CHECKPOINT_DIR: str(tmp_path / "later")}
    code, rest = trained_by_two(
        warm_paddle, tmp_path / "rest_logs", launch_of(tmp_path / "rest", data, **half), **variables
    )
    assert code == 0, (tmp_path / "rest_logs" / "rank0.out.log").read_text()[-3000:]
    curve = after(6, losses(unbroken))
    assert losses(rest).keys() == curve.keys()
    for step, loss in losses(rest).items():
        assert abs(loss - curve[step]) < 1e-4, step
