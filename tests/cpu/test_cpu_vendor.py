"""The cpu vendor: its devices are this machine's processors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from utils.config_files import load_constants
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "cpu"


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "cpu_vendor_under_test")


def test_the_command_lists_the_processors_of_this_machine(vendor: ModuleType) -> None:
    answer = subprocess.run(vendor.LIST_DEVICES_COMMAND, capture_output=True, text=True, check=True)
    devices = vendor.parse_device_list(answer.stdout)
    assert len(devices) == os.cpu_count()
    assert all(vendor.CHIPS["cpu"]["device_names"][0] in device for device in devices)


def test_there_is_no_peak_and_so_no_mfu(vendor: ModuleType) -> None:
    chip = vendor.CHIPS["cpu"]
    assert set(chip["peak_flops"].values()) == {None}
    assert "no peak" in chip["source"]


def test_the_settings_are_plain_data() -> None:
    settings = load_constants(VENDOR / "vendor.py")
    assert (settings["DEVICE_TYPE"], settings["COLLECTIVE_BACKEND"]["pytorch"]) == ("cpu", "gloo")
    assert settings["VISIBLE_DEVICES_ENV"] == "" and settings["CONTAINER_OPTIONS"] == {}


@pytest.mark.parametrize("model", ["bert", "glm", "cpm"])
def test_what_a_pytorch_demo_frees_stays_with_its_process(model: str) -> None:
    """Sourced from anywhere, a step's large blocks cost no page faults once they were there."""
    script = VENDOR / f"{model}-pytorch" / "config" / "environment_variables.sh"
    blocks = (
        "import resource\n"
        "def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        'def step(): [b"x" * (48 << 20) for _ in range(2)]\n'
        "step(); before = faults(); step(); print(faults() - before)"
    )
    python = [sys.executable, "-c", blocks]
    bare = subprocess.run(python, capture_output=True, text=True, check=True, cwd="/")
    command = ["bash", "-c", '. "$0"; exec "$@"', str(script), *python]
    sourced = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
    assert int(bare.stdout) > 10 * max(int(sourced.stdout), 1)
