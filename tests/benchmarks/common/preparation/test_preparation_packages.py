"""A preparation by a Python that lacks its packages, as the controller's may: an error that says how to get them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import benchmarks

TRAINING = Path(benchmarks.__file__).parents[1]
MODELS = sorted(path.parents[1].name for path in TRAINING.glob("benchmarks/*/prepare/__main__.py"))


@pytest.mark.parametrize("model", MODELS)
def test_what_is_not_installed_is_an_error_that_says_how_to_install_it(model: str) -> None:
    command = [sys.executable, "-S", "-m", f"benchmarks.{model}.prepare", "--help"]  # -S: no package of pip's
    done = subprocess.run(command, cwd=TRAINING, env={}, capture_output=True, text=True)
    packages = TRAINING / "benchmarks" / model / "prepare" / "requirements.txt"
    error, _, remedy = done.stderr.partition("\n    -> ")
    assert done.returncode == 1 and packages.is_file()
    assert error.startswith(f"{packages}: ") and " is not installed for " in error
    assert remedy.startswith(f"{sys.executable} -m pip install -r {packages} ")


def test_a_module_of_flagperfs_own_is_no_package() -> None:
    code = "from benchmarks.common.preparation.packages import packages_beside as beside\n"
    code += "with beside('x'): import utils.nothing"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=TRAINING, capture_output=True, text=True)
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'utils.nothing'\n")
