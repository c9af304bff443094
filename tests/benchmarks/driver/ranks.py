"""Run the tiny BERT case: in this process, or by the launcher with several ranks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.session import run
from run_benchmarks.frameworks import open_framework
from run_benchmarks.frameworks.base import LaunchJob
from tests.benchmarks.bert.shard_files import TINY_MODEL
from tests.ports import free_port
from utils.events import Event, parse_line, read_events

TRAINING = Path(benchmarks.__file__).parents[1]
BERT = TRAINING / "benchmarks" / "bert" / "pytorch"

TINY: dict[str, Any] = {
    **TINY_MODEL,
    "init_checkpoint": "",
    "train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "eval_batch_size": 4,
    "max_steps": 20,
    "max_samples_termination": None,
    "eval_interval_steps": 10,
    "eval_interval_samples": None,
    "target_mlm_accuracy": 1.0,
    "log_freq": 1,
    "optimizer": "lamb",
    "learning_rate": 0.02,
    "decay_steps": None,  # to 0 at max_steps
    "precision": "fp32",
    "dist_timeout_seconds": 60.0,
    "cpu_threads": 1,  # two threads for so little only wait for each other on a busy machine
}


def arguments(folder: Path, data_dir: Path, extern: Path | None = None, **settings: Any) -> LaunchArguments:
    """The launch contract for the tiny case; `settings` go into the vendor's file."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} = {value!r}" for name, value in {**TINY, **settings}.items()]
    (folder / "config_cpux1x1.py").write_text("\n".join(lines) + "\n")
    return LaunchArguments(
        case_dir=BERT,
        data_dir=data_dir,
        vendor="cpu",
        extern_config_dir=folder,
        extern_config_file="config_cpux1x1.py",
        enable_extern_config=True,
        extern_module_dir=extern or folder / "extern",
    )


def run_here(capsys: Any, launch: LaunchArguments) -> list[Event]:
    """One rank, in this process; its events."""
    capsys.readouterr()
    run(launch, time.monotonic())
    events = [parse_line(line) for line in capsys.readouterr().out.splitlines()]
    return [event for event in events if event is not None]


def command_line(launch: LaunchArguments) -> list[str]:
    """The training script's command, as the controller starts it."""
    return [
        sys.executable, "-u", str(TRAINING / "benchmarks/driver/run_pretraining.py"),
        "--case_dir", str(launch.case_dir), "--data_dir", str(launch.data_dir), "--vendor", launch.vendor,
        "--extern_config_dir", str(launch.extern_config_dir),
        "--extern_config_file", launch.extern_config_file,
        "--enable_extern_config", "--extern_module_dir", str(launch.extern_module_dir),
    ]  # fmt: skip


def launch_ranks(
    logs: Path, launch: LaunchArguments, ranks: int, python: str = sys.executable, **variables: str
) -> tuple[int, list[list[Event]]]:
    """Several ranks on one node, started as in a container; the exit code and each rank's events."""
    logs.mkdir()
    script = tuple(command_line(launch)[2:])
    job = LaunchJob(1, ranks, "127.0.0.1", free_port(), str(logs), script, python)
    argv = open_framework(launch.framework).launch_argv(job, 0)
    env = environment(**variables)
    completed = subprocess.run(argv, env=env, capture_output=True, timeout=300, check=False)
    paths = [logs / f"rank{rank}.out.log" for rank in range(ranks)]
    return completed.returncode, [read_events(path) for path in paths]


def environment(**variables: str) -> dict[str, str]:
    """This process's environment with the training folder as the Python path."""
    return {**os.environ, "PYTHONPATH": str(TRAINING), **variables}


def values_of(events: list[Event], name: str) -> list[dict[str, Any]]:
    """The values of all events of a name."""
    return [dict(event.value) for event in events if event.name == name]
