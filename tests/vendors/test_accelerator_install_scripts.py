"""Install scripts for images that bring the vendor's own PyTorch: another build is refused before pip is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TRAINING = Path(__file__).resolve().parents[2] / "training"
FOREIGN = {  # what stands in pip's records, and what the script says of it
    "metax": ({"torch": "2.10.0"}, "torch 2.10.0 is not of MetaX"),
    "mthreads": ({"torch": "2.9.1"}, "the image has no torch_musa"),
    "iluvatar": ({"torch": "2.10.0"}, "torch 2.10.0 is not of Iluvatar"),
    "kunlunxin": ({"torch": "2.9.0+cu129", "numpy": "2.2.6"}, "the image has no xmlir"),
    "cambricon": (
        {"torch": "2.10.0+cpu", "torch_mlu": "1.33.1+torch2.11.0", "numpy": "2.2.6"},
        "torch_mlu 1.33.1+torch2.11.0 is not for torch 2.10.0+cpu",
    ),
}
OWN = {
    "metax": {"torch": "2.10.0+metax3.8.0.7", "numpy": "2.3.5"},
    "mthreads": {"torch": "2.9.1+musa5.2.0", "torch_musa": "2.9.1", "numpy": "1.26.4"},
    "iluvatar": {"torch": "2.10.0+corex.4.5.0.20260804", "numpy": "1.26.4"},
    "kunlunxin": {"torch": "2.9.0+cu129", "xmlir": "1.0.0.1", "numpy": "2.2.6"},
    "cambricon": {"torch": "2.10.0+cpu", "torch_mlu": "1.33.1", "numpy": "2.2.6"},
}


def run(vendor: str, packages: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The script with FAKE records of pip's, a FAKE pip that prints its constraints, and FAKE tools of the vendors."""
    for name, version in packages.items():
        record = folder / "site" / f"{name}-{version}.dist-info" / "METADATA"
        record.parent.mkdir(parents=True)
        record.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    python3 = f'#!/bin/sh\n[ "$1" != -m ] || {{ echo "pip got:"; cat "$6"; exit 0; }}\nexec {sys.executable} -S "$@"\n'
    tools = dict.fromkeys(("mx-smi", "ixsmi", "xpu-smi", "cnmon"), "#!/bin/sh\n")
    for name, text in {"python3": python3, **tools}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(folder / "site")}
    script = TRAINING / vendor / "docker_image" / "pytorch" / "pytorch_install.sh"
    return subprocess.run(["sh", str(script)], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("vendor", FOREIGN)
def test_another_build_of_pytorch_is_refused(vendor: str, tmp_path: Path) -> None:
    packages, reason = FOREIGN[vendor]
    done = run(vendor, packages, tmp_path)
    assert done.returncode == 1
    assert reason in done.stderr
    assert "pip got" not in done.stdout


@pytest.mark.parametrize("vendor", FOREIGN)
def test_one_that_is_too_old_is_refused(vendor: str, tmp_path: Path) -> None:
    torch = OWN[vendor]["torch"].replace("2.10.", "2.3.").replace("2.9.", "2.3.")
    done = run(vendor, {**OWN[vendor], "torch": torch}, tmp_path)
    assert done.returncode == 1
    assert f"torch {torch}" in done.stderr and "older than 2.4" in done.stderr


@pytest.mark.parametrize("vendor", FOREIGN)
def test_pip_is_held_to_the_builds_that_are_there(vendor: str, tmp_path: Path) -> None:
    done = run(vendor, OWN[vendor], tmp_path)
    assert done.returncode == 0, done.stderr
    held = [f"{name}=={OWN[vendor][name]}" for name in ("torch", "numpy")]
    assert done.stdout.splitlines()[:3] == ["pip got:", *held]
