"""A made-up checkout in the form of public FlagPerf's: its layout and names are real, its cases are not."""

from __future__ import annotations

from pathlib import Path

SCRIPT = """\
import os, sys
CURR_PATH = os.path.abspath(os.path.dirname(__file__))
sys.path.append(os.path.abspath(os.path.join(CURR_PATH, "../../")))
from driver import Event
"""
FILES = {
    "benchmarks/driver/__init__.py": "from .event import Event\n",
    "benchmarks/driver/event.py": 'class Event: "--extern_config_file --vendor"\n',
    # a model whose name is taken here, and one of which it is not
    "benchmarks/toy/README.md": "toy\n",
    "benchmarks/toy/pytorch/run_pretraining.py": SCRIPT,
    "benchmarks/toy/pytorch/config/_base.py": "target_acc = 0.5\n",
    "benchmarks/llama3_8B/megatron/run_pretraining.py": "import torch\n",
    "benchmarks/aquila2_7B_container/in_container/run_pretraining.py": "",
    "benchmarks/resnet50/mindspore/train.py": "",
    "benchmarks/detr/pytorch/models.py": "",
    "acme/acme_monitor.py": "class Daemon: ...\n",
    "acme/standalone_monitor.py": "",
    "acme/toy-pytorch/config/config_X1x1x2.py": "max_steps = 3\n",
    "acme/toy-pytorch/config/config_common.py": "",
    "acme/toy-pytorch/csrc/setup.py": "",
    "acme/llama3_8B-megatron/config/config_X1x1x8.py": "",
    "acme/aquila2_7B_container-in_container/config.py": "",
    "acme/resnet50-mindspore/config/config_X1x1x8.py": "",
    "acme/detr-pytorch/config/config_X1x1x8.py": "",
    "acme/docker_image/pytorch/Dockerfile": "FROM torch\n",
    "acme/docker_image/pytorch/pytorch_install.sh": "",
    "acme/docker_image/megatron_core060/Dockerfile": "FROM megatron\n",
    "other/toy-pytorch/config/config_Y1x1x2.py": "",
    "other/docker_image/pytorch_2.0/Dockerfile": "FROM other\n",
    "run_benchmarks/config/test_conf.py": "CASES = {}\n",
    "utils/start_task_helper.py": "",
}


def make_checkout(folder: Path) -> Path:
    """The checkout, with a model that is a link to another one."""
    for name, text in FILES.items():
        path = folder / "training" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "training/benchmarks/toy_small").mkdir()
    (folder / "training/benchmarks/toy_small/pytorch").symlink_to("../toy/pytorch")
    settings = folder / "training/acme/toy_small-pytorch/config/config_X1x1x1.py"
    settings.parent.mkdir(parents=True)
    settings.touch(mode=0o755)
    return folder
