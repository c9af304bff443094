"""Real runs for the audit: the real program, driver and cases, as processes on this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.live_files import any_says
from tests.ports import free_port

TRAINING = Path(__file__).resolve().parents[2] / "training"
PATIENCE_S = 300.0
CONVERGES, MEASURES, ENDLESS = (
    "digits:pytorch:cpu:1:2:1",
    "gemm:pytorch:cpu:1:2:1",
    "digits:pytorch:cpu:1:1:1",
)
SMALL = 'sizes = dict.fromkeys(("fp64", "fp32", "int8"), (64, 64, 64))\n' + (
    "window_seconds = 0.002\nmax_warmup_windows = 3\n"
)
NEVER_ENDS = (
    "train_batch_size = 64\ntarget_accuracy = 1.01\nmax_steps = 10_000_000\nsave_steps = 40\nlog_freq = 7\n"
    "cpu_threads = 1\n"
)
# Made up, so that the figures that need a peak are there to be compared.
PEAK = '"peak_flops": {"fp32": 1.7e12, "fp64": 0.9e12},'
NO_PEAK = '"peak_flops": {"bf16": None, "fp16": None, "tf32": None, "fp32": None},'
# What the entry point does, on this tree.
PROGRAM = """\
import sys
from pathlib import Path
from run_benchmarks import verbs
from run_benchmarks.verbs import options
options.TRAINING_DIR = Path(sys.argv.pop(1))
sys.exit(verbs.main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Site:
    """A training folder with the real cases and a vendor with small configurations, and the two files."""

    folder: Path

    def runs(self) -> list[Path]:
        return sorted((self.folder / "result").glob("run*"))

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start run.py."""
        config = f"{self.folder}/config"
        command = [sys.executable, "-c", PROGRAM, f"{self.folder}/training", "--config", config, *arguments]
        with (self.folder / "output").open("ab") as output:
            return subprocess.Popen(
                command, env=environment(), stdout=output, stderr=output, start_new_session=True
            )

    def run_until_cut_off(self, *arguments: str) -> Path:
        """Run the cases, and press Ctrl-C when the endless one has evaluated; the run's folder."""
        before = self.runs()
        program = self.start(*arguments)
        try:
            self.wait_for_an_evaluation(program)
            program.send_signal(signal.SIGINT)
            assert program.wait(PATIENCE_S) == 130, self.output
        finally:
            program.terminate()
            program.wait(PATIENCE_S)
        (run,) = set(self.runs()) - set(before)
        return run

    def wait_for_an_evaluation(self, program: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        logs = f"fp/.flagperf/runs/**/{ENDLESS}/round1/**/rank0.out.log"
        while not any_says('"EVALUATE"', self.folder, logs):
            assert program.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()


def make_site(folder: Path, python: str) -> Site:
    """Digits that converge on two ranks, small matrices on two, and digits that never end on one."""
    training = folder / "training"
    (training / "cpu").mkdir(parents=True)
    for name in ("utils", "benchmarks"):
        shutil.copytree(TRAINING / name, training / name, ignore=shutil.ignore_patterns("__pycache__"))
    vendor = (TRAINING / "cpu" / "vendor.py").read_text()
    assert NO_PEAK in vendor
    (training / "cpu" / "vendor.py").write_text(vendor.replace(NO_PEAK, PEAK))
    shutil.copytree(TRAINING / "cpu" / "digits-pytorch", training / "cpu" / "digits-pytorch")
    (training / "cpu" / "digits-pytorch" / "config" / "config_cpux1x1.py").write_text(NEVER_ENDS)
    (training / "cpu" / "gemm-pytorch" / "config").mkdir(parents=True)
    (training / "cpu" / "gemm-pytorch" / "config" / "config_cpux1x2.py").write_text(SMALL)
    write_the_two_files(folder, python)
    prepare = [sys.executable, "-m", "benchmarks.digits.prepare", "--out", f"{folder}/data"]
    subprocess.run(prepare, cwd=TRAINING, env=environment(), check=True, timeout=PATIENCE_S)
    return Site(folder)


def write_the_two_files(folder: Path, python: str) -> None:
    conf = {
        "VENDOR": "cpu",
        "CASES": dict.fromkeys((CONVERGES, MEASURES, ENDLESS), f"{folder}/data"),
        "RUNTIME": "process",
        "PROCESS_PYTHON": python,
        "MIN_FREE_DISK_GIB": 0,
        "FLAGPERF_PATH": f"{folder}/fp",
        "FLAGPERF_LOG_PATH": f"{folder}/result",
        "CARBON_G_PER_KWH": 380,
        "COST_PER_KWH": (0.25, "EUR"),
        "CHECKPOINT_PATH": f"{folder}/checkpoints",
    }
    (folder / "config").mkdir()
    lines = (f"{name} = {value!r}\n" for name, value in conf.items())
    (folder / "config" / "test_conf.py").write_text("".join(lines))
    (folder / "config" / "cluster_conf.py").write_text(
        f'HOSTS = ["localhost"]\nMASTER_PORT = {free_port()}\n'
    )


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TRAINING)}


def shown(run: Path, *options: str) -> dict[str, Any]:
    """What `run.py show --json` prints of a run's folder."""
    command = [sys.executable, f"{TRAINING}/run_benchmarks/run.py", "show", str(run), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))
