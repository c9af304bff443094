"""A small training tree and a pair of config files, made for a test. Nothing in it can train."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from run_benchmarks.plan.load import load_plan
from run_benchmarks.plan.problems import ConfigError, NoValidCaseError
from run_benchmarks.plan.records import Plan
from utils.errors import Problem

VENDOR = """\
DEVICE_TYPE = "acme"
VISIBLE_DEVICES_ENV = "ACME_VISIBLE_DEVICES"
COLLECTIVE_BACKEND = {"pytorch": "gloo"}
CONTAINER_OPTIONS = ["--device=/dev/acme"]
CHIPS = {
    "X1": {
        "device_names": ["Acme X1"],
        "memory_gib": 32.0,
        "peak_flops": {"bf16": 1e14, "fp32": None},
        "source": "a test",
    },
}
LIST_DEVICES_COMMAND = ["acme-list"]


def parse_device_list(stdout):
    return stdout.splitlines()
"""

BASE = """\
hidden_size = 128
target_accuracy = 0.5
max_steps = 100
train_batch_size = 8
eval_interval_steps = 10
"""

CASE = """\
class Case:
    metric = "accuracy"
    flops_formula = "none"

    def __init__(self, context): self.width = context.settings["hidden_size"]
    def build_model(self): ...
    def training_data(self): ...
    def evaluation_data(self): ...
    def baseline(self): ...
    def loss(self, model, inputs): ...
    def evaluate(self, model, inputs): ...
    def metrics(self, sums): ...
"""

FILES = {
    "benchmarks/driver/run_pretraining.py": "",
    "benchmarks/toy/pytorch/__init__.py": "",
    "benchmarks/toy/pytorch/case.py": CASE,
    "benchmarks/toy/pytorch/config/_base.py": BASE,
    "benchmarks/toy/pytorch/config/mutable_params.py": 'mutable_params = ["train_batch_size"]\n',
    "utils/monitors/requirements.txt": "pip\n",  # what every base image has
    "acme/vendor.py": VENDOR,
    "acme/docker_image/pytorch/Dockerfile": "FROM scratch\n",
    "acme/docker_image/pytorch_2.1/Dockerfile": "FROM scratch\n",
    "acme/toy-pytorch/config/config_X1x1x2.py": "train_batch_size = 16\n",
    "acme/toy-pytorch/config/config_X1x2x1.py": "train_batch_size = 32\n",
}

CLUSTER_CONF = """\
HOSTS = ["node1", "node2"]
SSH_PORT = "22"
"""

# The later dialect; the 2022 one is below.
TEST_CONF = """\
VENDOR = "acme"
FLAGPERF_PATH = "/home/flagperf/training"
SHM_SIZE = "32G"
CASES = {
    "toy:pytorch:X1:1:2:1": "/data/toy",
}
"""

TEST_CONF_2022 = """\
VENDOR = "acme"
ACCE_CONTAINER_OPT = " --gpus all"
ACCE_VISIBLE_DEVICE_ENV_NAME = "CUDA_VISIBLE_DEVICES"
TEST_TYPE = "default"
PIP_SOURCE = "https://mirror.example.org/simple"
FLAGPERF_PATH_HOST = "/home/flagperf/training"
FLAGPERF_PATH_CONTAINER = "/workspace/flagperf/training"
FLAGPERF_LOG_PATH_HOST = "result"
FLAGPERF_LOG_PATH_CONTAINER = FLAGPERF_PATH_CONTAINER + "/result/"
FLAGPERF_LOG_LEVEL = 'debug'
SHM_SIZE = "64G"
CLEAR_CACHES = True
CASES = ['TOY_DEMO_2X1']

TOY_DEMO_2X1 = {
    "model": "toy",
    "framework": "pytorch",
    "config": "config_X1x2x1",
    "repeat": 3,
    "nnodes": 2,
    "nproc": 1,
    "data_dir_host": "/data/toy",
    "data_dir_container": "/mnt/data/toy",
}

# Real files keep many cases that CASES leaves out, for chips and folders that may not be there.
GLM_TORCH_DEMO_A100_1x8 = {
    "model": "glm",
    "framework": "pytorch",
    "config": "config_A100x1x8",
    "repeat": 1,
    "nnodes": 1,
    "nproc": 8,
    "data_dir_host": "/home/datasets_ckpt/glm/train/",
    "data_dir_container": "/mnt/data/glm/train/",
}
"""


@dataclass(frozen=True)
class Tree:
    """`training` and `config` are folders; `write` replaces files in the first."""

    training: Path
    config: Path

    def write(self, path: str, text: str) -> Path:
        """Write a file of the training tree."""
        return _write(self.training / path, text)

    def configure(self, *, test_conf: str | None = None, cluster_conf: str | None = None) -> None:
        """Replace config files."""
        if test_conf is not None:
            _write(self.config / "test_conf.py", test_conf)
        if cluster_conf is not None:
            _write(self.config / "cluster_conf.py", cluster_conf)

    def load(self, only: Sequence[str] | None = None, log_path: Path | None = None) -> Plan:
        """The plan that the tree and the files give."""
        return load_plan(self.config, self.training, only_cases=only, log_path=log_path)

    def problems(self, only: Sequence[str] | None = None) -> tuple[int, tuple[Problem, ...]]:
        """The exit code and the problems of a configuration that is wrong."""
        try:
            plan = self.load(only)
        except (ConfigError, NoValidCaseError) as error:
            return error.exit_code, error.problems
        raise AssertionError(f"no problem was found: {plan}")


def copy_code(source: Path, target: Path) -> None:
    """Copy a folder of the real tree: hosts get no links."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))


def make_tree(folder: Path) -> Tree:
    """The tree of FILES, with config files in the later dialect."""
    tree = Tree(folder / "training", folder / "config")
    for path, text in FILES.items():
        tree.write(path, text)
    tree.configure(test_conf=TEST_CONF, cluster_conf=CLUSTER_CONF)
    return tree


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
