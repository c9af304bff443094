"""How long a case takes to start, and how much of training it waits for data: the demos, 1x2, on two cores.

    .venv/bin/python benches/start_and_wait.py [--runs 3] [--steps 400] [--cases bert,cpm]

Real runs of the driver with the demos' data and vendor configs, started as in a container. Of each the median run:

    imports_s         first line of the training script to INIT_START: Python and the framework are imported
    init_to_train_s   INIT_START to TRAIN_START, on the slowest rank: model, data, first evaluation
    wait_share        data_wait_time / raw_train_time
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TRAINING = Path(__file__).resolve().parents[1] / "training"
sys.path.insert(0, str(TRAINING))

from run_benchmarks.frameworks import open_framework  # noqa: E402
from run_benchmarks.frameworks.base import LaunchJob  # noqa: E402
from utils.events import Event, read_events  # noqa: E402

RANKS = 2
LIMITS = {"init_to_train_s": 5.0, "wait_share": 0.02}


@dataclass(frozen=True)
class Demo:
    """A case whose demo is run. Its folders may be absent: then it is passed over."""

    model: str
    framework: str

    @property
    def case_dir(self) -> Path:
        return TRAINING / "benchmarks" / self.model / self.framework

    @property
    def config_dir(self) -> Path:
        return TRAINING / "cpu" / f"{self.model}-{self.framework}" / "config"

    @property
    def is_there(self) -> bool:
        return (self.case_dir / "case.py").is_file() and (self.config_dir / "config_cpux1x2.py").is_file()


DEMOS = {
    "bert": Demo("bert", "pytorch"),
    "cpm": Demo("cpm", "pytorch"),
    "glm": Demo("glm", "pytorch"),
    "bert_paddle": Demo("bert", "paddle"),
}


@dataclass(frozen=True)
class Measured:
    """One run, in seconds; `wait_share` of 1."""

    imports_s: float
    init_to_train_s: float
    wait_share: float
    train_s: float


def prepared(demo: Demo, folder: Path) -> Path:
    """The demo's data, made once for all frameworks."""
    data = folder / demo.model
    if not data.is_dir():
        command = [sys.executable, "-m", f"benchmarks.{demo.model}.prepare", "--demo", "--out", str(data)]
        completed = subprocess.run(command, cwd=TRAINING, capture_output=True, text=True, check=False)
        if completed.returncode:
            sys.exit(f"the data of {demo.model} could not be prepared: {completed.stderr}")
    return data


def measure(demo: Demo, data: Path, logs: Path, steps: int) -> Measured:
    """Train for `steps` steps, a target out of reach."""
    script = (
        str(TRAINING / "benchmarks/driver/run_pretraining.py"),
        f"--case_dir={demo.case_dir}",
        f"--data_dir={data}",
        "--vendor=cpu",
        "--enable_extern_config",
        f"--extern_config_dir={demo.config_dir}",
        "--extern_config_file=config_cpux1x2.py",
        f"--extern_module_dir={demo.config_dir.parent / 'extern'}",
        f"--max_steps={steps}",
        "--target=2.0",
    )
    logs.mkdir(parents=True)
    job = LaunchJob(1, RANKS, "127.0.0.1", _free_port(), str(logs), script, sys.executable)
    argv = [*_with_environment(demo.config_dir), *open_framework(demo.framework).launch_argv(job, 0)]
    completed = subprocess.run(
        argv, env={**os.environ, "PYTHONPATH": str(TRAINING)}, capture_output=True, text=True, check=False
    )
    ranks = [logs / f"rank{rank}.out.log" for rank in range(RANKS)]
    if completed.returncode:
        told = "\n".join(path.read_text()[-2000:] for path in ranks if path.is_file())
        sys.exit(f"{demo}: exit code {completed.returncode}\n{completed.stdout}{completed.stderr}{told}")
    return _measured([{event.name: event for event in read_events(path)} for path in ranks])


def _measured(ranks: Sequence[dict[str, Event]]) -> Measured:
    """From the last event of each name of each rank."""
    first = ranks[0]
    finished = first["FINISHED"]
    script_start_ms = finished.time_ms - 1000 * finished.value["e2e_time"]
    return Measured(
        imports_s=(first["INIT_START"].time_ms - script_start_ms) / 1000,
        init_to_train_s=max(rank["TRAIN_START"].time_ms - rank["INIT_START"].time_ms for rank in ranks)
        / 1000,
        wait_share=finished.value["data_wait_time"] / finished.value["raw_train_time"],
        train_s=finished.value["raw_train_time"],
    )


def row(case: str, run: Measured) -> str:
    """A line of the table."""
    times = f"{run.imports_s:10.2f} {run.init_to_train_s:16.2f}"
    return f"{case:12} {times} {run.wait_share:11.2%} {run.train_s:8.1f}"


def _with_environment(config_dir: Path) -> list[str]:
    """A command that runs the one after it with the variables of the vendor's file, where there is one."""
    path = config_dir / "environment_variables.sh"
    return ["bash", "-c", 'set -a; . "$0"; exec "$@"', str(path)] if path.is_file() else []


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 4)


def main() -> int:
    """Measure, print the table and, last, one JSON object. 1 if a limit of the docs is passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="runs of each case (%(default)s)")
    parser.add_argument("--steps", type=int, default=400, help="steps of a run (%(default)s)")
    parser.add_argument("--cases", default=",".join(DEMOS), help="which cases (%(default)s)")
    options = parser.parse_args()
    result: dict[str, dict[str, float]] = {}
    print(f"{'case':12} {'imports_s':>10} {'init_to_train_s':>16} {'wait_share':>11} {'train_s':>8}")
    with tempfile.TemporaryDirectory(prefix="flagperf-start-", dir="/var/tmp") as name:
        folder = Path(name)
        for case in options.cases.split(","):
            demo = DEMOS[case]
            if not demo.is_there:
                print(f"{case:12} not here: no {demo.case_dir.relative_to(TRAINING)} with a cpu config")
                continue
            data = prepared(demo, folder / "data")
            runs = [
                measure(demo, data, folder / f"{case}{run}", options.steps) for run in range(options.runs)
            ]
            print("\n".join(row(case, run) for run in runs), flush=True)
            result[case] = {
                "init_to_train_s": _median([run.init_to_train_s for run in runs]),
                "wait_share": _median([run.wait_share for run in runs]),
                "imports_s": _median([run.imports_s for run in runs]),
            }
    passed = [
        f"{case}.{name}"
        for case, found in result.items()
        for name, limit in LIMITS.items()
        if found[name] >= limit
    ]
    print(f"over the limit: {', '.join(passed) or 'none'} (limits: {LIMITS})")
    print(json.dumps(result))
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main())
