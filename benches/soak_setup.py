"""What soak.py sets up: the case of the trivial task, a run's settings, and hosts whose disk can be filled."""

from __future__ import annotations

import sys
from pathlib import Path

import soak_task
from soak_faults import DISK_MIB, WORK_HOST

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import Bench

ENVIRONMENT = Path(sys.prefix).resolve()  # whose Python runs the task where no container does


def write_task(bench: Bench, rounds: int, data: Path, runtime: str) -> str:
    """Make the case of the trivial task and the run's settings; the case's name."""
    case = bench.training / "benchmarks" / "soak" / "pytorch"
    base = f"target_accuracy = 0.5\nmax_steps = {soak_task.STEPS}\ntrain_batch_size = 8\n"
    files = {
        case / "__init__.py": "",
        case / "run_pretraining.py": Path(soak_task.__file__).read_text(),
        case / "config" / "_base.py": base,
        case / "config" / "mutable_params.py": "mutable_params = []\n",
        bench.training / "cpu" / "soak-pytorch" / "config" / "config_cpux2x1.py": "",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    name = f"soak:pytorch:cpu:2:1:{rounds}"
    own = {"RUNTIME": runtime, "PROCESS_PYTHON": str(ENVIRONMENT / "bin/python")}
    bench.test(CASES={name: str(data)}, FLAGPERF_PATH_HOST=WORK_HOST, MIN_FREE_DISK_GIB=0, **own)
    return name


def give_small_disk(lab: Lab, index: int) -> None:
    """Let a host's work folder be on a file system of its own that can be filled."""
    lab.ssh(index, "mkdir", "-p", "-m", "755", WORK_HOST)
    lab.ssh(index, "mount", "-t", "tmpfs", "-o", f"mode=755,size={DISK_MIB}m", "tmpfs", WORK_HOST)
