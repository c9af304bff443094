"""What the vendors' `pytorch_install.sh` ask pip for, and in which order.

A FAKE `python3` stands at the tool's boundary: it writes down what pip was asked and knows which builds there are.
The real thing is several hundred MB and runs when the harness builds an image.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

TRAINING = Path(__file__).parents[2] / "training"
FAKE_PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit 0
echo "$*" >> "$ASKED"
case "$*" in *torch=*) ;; *) exit 0 ;; esac
case "$*" in $THERE_IS) exit 0 ;; *) exit 1 ;; esac
"""

CPU_INDEX = "--extra-index-url https://download.pytorch.org/whl/cpu"
CUDA_INDEX = "--extra-index-url https://download.pytorch.org/whl/cu130"


def install(vendor: str, there_is: str, folder: Path) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the script where only builds that match the shell pattern `there_is` can be had."""
    python = folder / "python3"
    python.write_text(FAKE_PYTHON.replace("$THERE_IS", there_is))
    python.chmod(0o755)
    asked = folder / "asked"
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "ASKED": str(asked)}
    script = TRAINING / vendor / "docker_image" / "pytorch" / "pytorch_install.sh"
    done = subprocess.run(["sh", str(script)], env=environment, capture_output=True, text=True, check=False)
    prefix = "-m pip install --quiet "
    return done, [line.removeprefix(prefix) for line in asked.read_text().splitlines()]


@pytest.mark.parametrize(
    ("vendor", "there_is", "attempts"),
    [
        ("cpu", "*torch==2.13.0+cpu*", ["torch==2.13.0+cpu"]),
        (
            "cpu",
            "*whl/cpu*",
            ["torch==2.13.0+cpu", f"--retries 1 --timeout 20 {CPU_INDEX} torch==2.13.0+cpu"],
        ),
        (
            "cpu",
            "*torch==2.13.0",
            [
                "torch==2.13.0+cpu",
                f"--retries 1 --timeout 20 {CPU_INDEX} torch==2.13.0+cpu",
                "torch==2.13.0",
            ],
        ),
        ("nvidia", "*torch===2.13.0", ["torch===2.13.0"]),
        (
            "nvidia",
            "*whl/cu130*",
            ["torch===2.13.0", f"--retries 1 --timeout 20 {CUDA_INDEX} torch==2.13.0+cu130"],
        ),
    ],
)
def test_the_first_place_that_has_the_build_is_taken(
    tmp_path: Path, vendor: str, there_is: str, attempts: list[str]
) -> None:
    done, asked = install(vendor, there_is, tmp_path)
    assert done.returncode == 0, done.stderr
    assert asked[:-1] == attempts
    assert all(f"{package}==" in asked[-1] for package in ("numpy", "h5py", "safetensors"))
    assert "found by the pip settings given\n" in done.stdout or len(attempts) > 1
    assert ("nvidia-ml-py==" in asked[-1]) == (vendor == "nvidia")


@pytest.mark.parametrize("vendor", ["cpu", "nvidia"])
def test_without_any_build_the_script_fails_and_says_what_to_give(tmp_path: Path, vendor: str) -> None:
    done, asked = install(vendor, "nothing", tmp_path)
    assert done.returncode == 1
    assert "cannot be installed. Give the build a package index" in done.stderr
    assert all("torch" in line for line in asked), "nothing else is installed after that"
