"""Case and vendor folders in the layout of existing FlagPerf run unchanged: the folder `existing_case`."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from run_benchmarks import verbs
from run_benchmarks.verbs import options
from tests.run_benchmarks.plan.tree import Tree, copy_code
from utils.code_files import digest_of_file

HERE = Path(__file__).resolve().parent
REAL_TRAINING = HERE.parents[1] / "training"
CASE_DIR = "benchmarks/rings/pytorch"
NAME = "RINGS_TORCH_DEMO_X1_1X2"
ENVIRONMENT = "acme/rings-pytorch/config/environment_variables.sh"
# The dialect of 2022, as such users have it. ACCE_* say what a vendor.py would.
TEST_CONF = """\
VENDOR = "acme"
ACCE_CONTAINER_OPT = " --device=/dev/acme0 "
ACCE_VISIBLE_DEVICE_ENV_NAME = "ACME_VISIBLE_DEVICES"
TEST_TYPE = "default"
FLAGPERF_PATH_HOST = "{folder}/fp"
FLAGPERF_PATH_CONTAINER = "/workspace/flagperf/training"
FLAGPERF_LOG_PATH_HOST = "{folder}/result"
FLAGPERF_LOG_PATH_CONTAINER = FLAGPERF_PATH_CONTAINER + "/result/"
FLAGPERF_LOG_LEVEL = 'debug'
SHM_SIZE = "32G"
CLEAR_CACHES = False
CASES = ['RINGS_TORCH_DEMO_X1_1X2']

RINGS_TORCH_DEMO_X1_1X2 = {{
    "model": "rings",
    "framework": "pytorch_1.8",
    "config": "config_X1x1x2",
    "repeat": 1,
    "nnodes": 1,
    "nproc": 2,
    "data_dir_host": "{folder}/data",
    "data_dir_container": "/mnt/data/rings/",
}}
"""
PROCESS = """
RUNTIME = "process"
PROCESS_PYTHON = {python!r}
MIN_FREE_DISK_GIB = 0
MONITOR_INTERVAL = 0.2
"""


@dataclass
class Existing:
    """A `training/` with an existing case and vendor copied into it, as a user does."""

    tree: Tree
    folder: Path
    python: str = sys.executable  # of the ranks

    def configure(self, more: str = "") -> None:
        """Write test_conf.py with `more` lines."""
        self.tree.configure(test_conf=TEST_CONF.format(folder=self.folder) + more)

    def run(self) -> int:
        """Run it as plain processes; the exit code."""
        self.configure(PROCESS.format(python=self.python))
        return verbs.main(["--config", str(self.tree.config)])

    def remedies(self) -> list[str]:
        """Of the problems that are found."""
        return [problem.remedy for problem in self.tree.problems()[1]]

    @property
    def node(self) -> Path:
        """The folder of the only run's only node."""
        (run,) = (self.folder / "result").iterdir()
        return run / NAME / "round1" / "localhost_noderank0"

    @property
    def result(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.node.parent / "result.json").read_text())
        return loaded


def write_points(folder: Path) -> None:
    """Points on two rings of radius 1 and 2."""
    generator = np.random.default_rng(3)
    labels = generator.integers(2, size=1200)
    angles = generator.uniform(0, 2 * np.pi, size=1200)
    radii = 1 + labels + generator.normal(scale=0.1, size=1200)
    rows = np.column_stack([radii * np.cos(angles), radii * np.sin(angles), labels])
    folder.mkdir()
    np.savetxt(folder / "points.txt", rows, fmt="%.6f")


@pytest.fixture
def existing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Existing]:
    training = tmp_path / "training"
    shutil.copytree(HERE / "existing_case", training, ignore=shutil.ignore_patterns("__pycache__"))
    copy_code(REAL_TRAINING / "utils", training / "utils")
    (training / "benchmarks/__init__.py").touch()
    copy_code(REAL_TRAINING / "benchmarks/driver", training / "benchmarks/driver")
    write_points(tmp_path / "data")
    made = Existing(Tree(training, tmp_path / "config"), tmp_path)
    monkeypatch.setattr(options, "TRAINING_DIR", training)
    with socket.socket() as bound:  # a port that is free now
        bound.bind(("", 0))
        port = bound.getsockname()[1]
    made.tree.configure(cluster_conf=f'HOSTS = ["localhost"]\nSSH_PORT = "22"\nMASTER_PORT = "{port}"\n')
    made.configure()
    yield made


# ---- a whole run


def test_an_existing_case_becomes_a_result_like_any_other(
    existing: Existing, capsys: pytest.CaptureFixture[str], warm_python: str
) -> None:
    existing.python = warm_python
    code = existing.run()
    log = (existing.node / "rank0.out.log").read_text()
    assert code == 0, f"{capsys.readouterr().err}\n{log}"
    result = existing.result
    assert (result["verdict"], result["failure"]) == ("CONVERGED", None)
    facts, figures = result["facts"], result["figures"]
    assert set(facts) == {
        *("e2e_time", "training_sequences_per_second", "converged", "final_loss", "final_accuracy"),
        *("raw_train_time", "init_time"),
    }
    for name in ("e2e_time", "init_time", "raw_train_time", "final_loss"):
        assert figures[name]["value"] == facts[name]
    assert figures["p_whole"]["value"] == facts["training_sequences_per_second"]
    assert "training_sequences_per_second" in figures["p_whole"]["source"]
    assert (figures["acc"]["value"], figures["acc"]["unit"]) == (facts["final_accuracy"], "accuracy")
    assert facts["final_accuracy"] >= 0.95
    assert 0 < figures["time_to_target"]["value"] <= figures["raw_train_time"]["value"]
    for name in ("no_eval_time", "p_train", "p_core", "MFU", "mem", "samples"):
        assert figures[name]["value"] is None and figures[name]["source"], name
    assert "peak FLOP/s is not known" in figures["MFU"]["source"]
    assert result["rules"] == {
        "stamp": "closed",
        "differs": {},
        "hooks": None,
        "doubt": "",
        "vendors_case": "",
        "environment": {ENVIRONMENT: digest_of_file(existing.tree.training / ENVIRONMENT)},
        "stand_in": "",
        "earlier": [],
    }
    assert "not checked: nothing says how to list those of acme" in capsys.readouterr().err
    monitor_log = (existing.node / "monitor.log").read_text()
    assert "has no open_devices()" in monitor_log and "cpu" in monitor_log
    assert (existing.node / "cpu_monitor.log").stat().st_size
    assert "FlagPerf started this monitor" not in monitor_log


def test_a_loss_that_is_not_finite_and_a_target_that_is_not_met(existing: Existing, warm_python: str) -> None:
    existing.python = warm_python
    more = "\nmax_steps = 50\ntarget_accuracy = 2.0\nfinite_loss = False\n"
    config = existing.tree.training / "acme/rings-pytorch/config/config_X1x1x2.py"
    config.write_text(config.read_text() + more)
    assert existing.run() == 1
    result = existing.result
    assert (result["verdict"], result["failure"]) == ("NOT_CONVERGED", None)
    assert '"final_loss": NaN' in (existing.node / "rank0.out.log").read_text()
    assert result["facts"]["final_loss"] is None
    assert result["figures"]["final_loss"]["value"] is None
    assert result["rules"] == {
        "stamp": "open",
        "differs": {"max_steps": 50, "target_accuracy": 2.0, "finite_loss": False},
        "hooks": None,
        "doubt": "",
        "vendors_case": "",
        "environment": {ENVIRONMENT: digest_of_file(existing.tree.training / ENVIRONMENT)},
        "stand_in": "",
        "earlier": [],
    }


# ---- the launch contract

TELL = """\
import json, os, sys

print("[TOLD] " + json.dumps({"argv": sys.argv, "env": dict(os.environ), "path": sys.path}), flush=True)
"""


def told(log: Path) -> dict[str, Any]:
    """What the script TELL printed."""
    (line,) = [line for line in log.read_text().splitlines() if line.startswith("[TOLD] ")]
    found: dict[str, Any] = json.loads(line.removeprefix("[TOLD] "))
    return found


def test_arguments_and_environment_are_those_of_the_contract(existing: Existing) -> None:
    existing.tree.write(f"{CASE_DIR}/run_pretraining.py", TELL)
    assert existing.run() == 1  # it trains nothing
    ranks = [told(existing.node / f"rank{rank}.out.log") for rank in (0, 1)]
    tree = ranks[0]["argv"][0].removesuffix(f"/{CASE_DIR}/run_pretraining.py")
    home = f"{tree}/acme/rings-pytorch"
    for rank, it in enumerate(ranks):
        assert it["argv"] == [
            *(f"{tree}/{CASE_DIR}/run_pretraining.py", "--data_dir", f"{existing.folder}/data"),
            *("--extern_config_dir", f"{home}/config", "--extern_config_file", "config_X1x1x2.py"),
            *("--vendor", "acme", "--enable_extern_config", "--extern_module_dir", f"{home}/extern"),
        ]
        wanted = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        wanted |= {"NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1", "ACME_VISIBLE_DEVICES": "0,1"}
        wanted |= {"RINGS_CACHE": "/tmp"}  # of the vendor's environment_variables.sh
        assert {name: it["env"].get(name) for name in wanted} == wanted
        assert it["env"]["MASTER_PORT"].isdigit()
        # the case's own folder comes first, so that its `driver`, `config` and `utils` are found before others
        assert it["path"][0] == f"{tree}/{CASE_DIR}"
    assert Path(f"{home}/extern").is_dir(), "existing drivers fail without the folder"


# ---- whose `driver`


def test_a_driver_beside_all_cases_of_a_vendor(existing: Existing, warm_python: str) -> None:
    """TEST_TYPE = "customized": cases and the driver package lie as they did, below the vendor's folder."""
    theirs = existing.tree.training / "acme/benchmarks"
    shutil.move(existing.tree.training / "benchmarks/rings", theirs / "rings")
    shutil.move(theirs / "rings/pytorch/driver", theirs / "driver")
    existing.configure('\nTEST_TYPE = "customized"\n' + PROCESS.format(python=warm_python))
    assert verbs.main(["--config", str(existing.tree.config)]) == 0
    assert existing.result["verdict"] == "CONVERGED"
    rules = existing.result["rules"]
    assert (rules["stamp"], rules["vendors_case"]) == ("open", "acme/benchmarks/rings/pytorch")


def test_a_case_without_its_driver_is_refused_before_the_launch(existing: Existing) -> None:
    shutil.rmtree(existing.tree.training / CASE_DIR / "driver")
    assert existing.remedies() == [
        f"copy the driver package that the case was written for to {CASE_DIR}/driver"
    ]


def test_flagperfs_driver_does_not_pass_for_an_earlier_one() -> None:
    """A script that puts benchmarks/ before all other folders gets a word on it, not a riddle."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); from driver import Driver"
    command = [sys.executable, "-c", code, str(REAL_TRAINING / "benchmarks")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is not the package `driver` that this case was written for: copy that one" in done.stderr
