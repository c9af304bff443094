"""Install scripts that add to the image's own PyTorch: another build ends them, and pip takes nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TRAINING = Path(__file__).resolve().parents[2] / "training"
OWN = {"amd": "2.10.0+rocm7.2.4.git1234", "hygon": "2.9.0+das.opt1.dtk2604", "intel": "2.13.0+xpu"}
CUDA = "2.13.0"
PYTHON = f"""#!/bin/sh
[ "$1" != -m ] || {{ echo "$*" >>"$ASKED"; exit 0; }}
exec {sys.executable} -S "$@"
"""


def run(vendor: str, torch: str, folder: Path) -> tuple[subprocess.CompletedProcess[str], str]:
    """The script with a FAKE pip, FAKE records of pip's, and a FAKE torch; and what pip was asked for."""
    site, asked = folder / "site", folder / "asked"
    for name, version in {"torch": torch, "numpy": "2.2.6"}.items():
        record = site / f"{name}-{version}.dist-info" / "METADATA"
        record.parent.mkdir(parents=True)
        record.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    hip = "7.2" if "rocm" in torch else None
    (site / "torch.py").write_text(f"__version__ = {torch!r}\nclass version: hip = {hip!r}\n")
    (folder / "python3").write_text(PYTHON)
    (folder / "python3").chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(site), "ASKED": str(asked)}
    script = TRAINING / vendor / "docker_image" / "pytorch" / "pytorch_install.sh"
    done = subprocess.run(["sh", str(script)], env=environment, capture_output=True, text=True, check=False)
    return done, asked.read_text() if asked.exists() else ""


@pytest.mark.parametrize("vendor", OWN)
def test_another_build_or_one_that_is_too_old_is_refused(vendor: str, tmp_path: Path) -> None:
    for torch in (CUDA, OWN[vendor].replace(OWN[vendor].partition("+")[0], "2.3.1")):
        done, asked = run(vendor, torch, tmp_path / torch)
        assert done.returncode == 1
        assert f"torch {torch} is not" in done.stderr and "BASE_IMAGE" in done.stderr
        assert not asked


@pytest.mark.parametrize("vendor", OWN)
def test_pip_is_asked_for_no_dependency(vendor: str, tmp_path: Path) -> None:
    done, asked = run(vendor, OWN[vendor], tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"torch {OWN[vendor]}" in done.stdout
    assert asked.startswith("-m pip install --quiet --no-deps h5py==") and "torch" not in asked
    assert ("pyzes==" in asked) == (vendor == "intel")
