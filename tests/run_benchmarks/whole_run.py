"""A whole run on this machine in seconds: real processes, and one toy script in place of training.

Deployment, launcher, units, monitors, logs, collection and judgement are the real ones; real training has
its own tests (benchmarks/, e2e/).
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks import verbs
from run_benchmarks.verbs import options
from tests.run_benchmarks.plan.tree import TEST_CONF, VENDOR, Tree, copy_code, make_tree

REAL_TRAINING = Path(__file__).resolve().parents[2] / "training"
# The toy's behaviour is the text of the file `behaviour` in its data directory.
SCRIPT = """\
import sys, time
from pathlib import Path

from utils.events import Event, EventName, format_line


def log(name, **value):
    print(format_line(Event(name, value, time_ms=int(time.time() * 1000))), flush=True)


behaviour = Path(sys.argv[sys.argv.index("--data_dir") + 1], "behaviour").read_text()
log(EventName.INIT_START)
log(EventName.TRAIN_START, max_steps=10)
log(EventName.STEP_END, global_steps=1, loss=2.0)
if behaviour == "fail":
    print(f"{__file__}: it will break", flush=True)
    raise SystemExit("the toy breaks")
if behaviour == "hang":
    time.sleep(600)
time.sleep(0.05)
log(EventName.TRAIN_END)
log(EventName.FINISHED, converged=behaviour == "converge", num_trained_samples=100, raw_train_time=0.05,
    no_eval_time=0.04, pure_compute_time=0.03, e2e_time=0.1, failed_checkpoints=3 * (behaviour == "unsaved"))
"""

# What the entry point does, on the test's own tree.
PROGRAM = """\
import sys
from pathlib import Path
from run_benchmarks.program import run_program

def run_verb():
    from run_benchmarks import verbs
    from run_benchmarks.verbs import options
    options.TRAINING_DIR = Path(sys.argv.pop(1))
    return verbs.main(sys.argv[1:])

sys.exit(run_program(run_verb))
"""


@dataclass
class WholeRun:
    """A tree with one case, and the host folder and log path of its runs."""

    tree: Tree
    folder: Path

    @property
    def host(self) -> Path:
        """FlagPerf's own folder on the host."""
        return self.folder / "fp" / ".flagperf"

    @property
    def result(self) -> Path:
        """The result folder of the only run."""
        (run,) = (self.folder / "result").iterdir()
        return run

    @property
    def summary(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.result / "summary.json").read_text())
        return loaded

    def behave(self, behaviour: str) -> None:
        """Say what the toy does."""
        (self.folder / "data" / "behaviour").write_text(behaviour)

    def configure(self, more: str = "") -> None:
        """Write test_conf.py with `more` lines."""
        text = TEST_CONF.replace("/home/flagperf/training", f"{self.folder}/fp")
        text = text.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:1:1:1").replace(
            "/data/toy", f"{self.folder}/data"
        )
        own = f'RUNTIME = "process"\nPROCESS_PYTHON = {sys.executable!r}\nMIN_FREE_DISK_GIB = 0\n'
        log = f'FLAGPERF_LOG_PATH = "{self.folder}/result"\n'
        self.tree.configure(test_conf=text + own + log + more)

    def main(self, *arguments: str) -> int:
        """Do what the command line says; the exit code."""
        return verbs.main(["--config", str(self.tree.config), *arguments])

    def command(self, *arguments: str) -> list[str]:
        """The same as a program of its own."""
        python = ("env", f"PYTHONPATH={REAL_TRAINING}", sys.executable)
        return [
            *python,
            "-c",
            PROGRAM,
            str(self.tree.training),
            "--config",
            str(self.tree.config),
            *arguments,
        ]

    def units_left(self) -> list[str]:
        """Units that are still on the host."""
        units = self.host / "units"
        return [path.name for path in units.iterdir()] if units.is_dir() else []

    def files_left(self) -> list[str]:
        """What is there of any run on the host, but the code, which later runs use."""
        patterns = ("units/*", "runs/*", "pip/*", "copy-*")
        return [str(path.relative_to(self.host)) for pattern in patterns for path in self.host.glob(pattern)]


def make_whole_run(folder: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> WholeRun:
    """A run of one case with one rank on this machine that converges."""
    tree = make_tree(folder)
    tree.configure(cluster_conf=f'HOSTS = ["localhost"]\nMASTER_PORT = "{port}"\n')
    tree.write("acme/vendor.py", VENDOR.replace('["acme-list"]', '["echo", "Acme X1"]'))
    tree.write("acme/toy-pytorch/config/config_X1x1x1.py", "")
    tree.write("benchmarks/toy/pytorch/run_pretraining.py", SCRIPT)
    shutil.rmtree(tree.training / "utils")
    copy_code(REAL_TRAINING / "utils", tree.training / "utils")
    (folder / "data").mkdir()
    monkeypatch.setattr(options, "TRAINING_DIR", tree.training)
    run = WholeRun(tree, folder)
    run.configure()
    run.behave("converge")
    return run
