"""What the vendors' `paddle_install.sh` ask pip for, and in which order.

pip is a FAKE (tests/fakes/python3.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.python3 import install

INDEX = "--retries 1 --timeout 20 --extra-index-url https://www.paddlepaddle.org.cn/packages/stable"
PINS = {"cpu": "paddlepaddle==3.3.1", "nvidia": "paddlepaddle-gpu==3.3.1"}
FOLDERS = {"cpu": "cpu", "nvidia": "cu126"}


@pytest.mark.parametrize("vendor", PINS)
@pytest.mark.parametrize("own_settings_do", [True, False])
def test_the_first_place_that_has_the_build_is_taken(
    tmp_path: Path, vendor: str, own_settings_do: bool
) -> None:
    pin, public = PINS[vendor], f"{INDEX}/{FOLDERS[vendor]}/ {PINS[vendor]}"
    done, asked = install(
        "paddle", vendor, "*paddle*", f"*quiet?{pin}" if own_settings_do else "*packages/stable*", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert asked[:-1] == ([pin] if own_settings_do else [pin, public])
    assert all(f"{package}==" in asked[-1] for package in ("numpy", "h5py", "safetensors"))
    assert ("nvidia-ml-py==" in asked[-1]) == (vendor == "nvidia")


@pytest.mark.parametrize("vendor", PINS)
def test_without_any_build_the_script_fails_and_says_what_to_give(tmp_path: Path, vendor: str) -> None:
    done, asked = install("paddle", vendor, "*paddle*", "nothing", tmp_path)
    assert done.returncode == 1
    assert "cannot be installed. Give the build a package index" in done.stderr
    assert all("paddle" in line for line in asked), "nothing else is installed after that"
