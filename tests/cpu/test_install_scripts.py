"""What the vendors' `pytorch_install.sh` ask pip for, and in which order.

pip is a FAKE (tests/fakes/python3.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.python3 import install

CPU_INDEX = "--extra-index-url https://download.pytorch.org/whl/cpu"
CUDA_INDEX = "--extra-index-url https://download.pytorch.org/whl/cu130"


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
    done, asked = install("pytorch", vendor, "*torch=*", there_is, tmp_path)
    assert done.returncode == 0, done.stderr
    assert asked[:-1] == attempts
    assert all(f"{package}==" in asked[-1] for package in ("numpy", "h5py", "safetensors"))
    assert "found by the pip settings given\n" in done.stdout or len(attempts) > 1
    assert ("nvidia-ml-py==" in asked[-1]) == (vendor == "nvidia")


@pytest.mark.parametrize("vendor", ["cpu", "nvidia"])
def test_without_any_build_the_script_fails_and_says_what_to_give(tmp_path: Path, vendor: str) -> None:
    done, asked = install("pytorch", vendor, "*torch=*", "nothing", tmp_path)
    assert done.returncode == 1
    assert "cannot be installed. Give the build a package index" in done.stderr
    assert all("torch" in line for line in asked), "nothing else is installed after that"
