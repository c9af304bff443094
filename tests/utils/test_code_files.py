"""The digest of a folder of code is what anybody gets with sha256sum."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from utils.code_files import code_files, digest_of
from utils.errors import FlagPerfError


def test_the_digest_is_that_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "__pycache__").mkdir()
    for name in ("b.py", "a.py", "kernels/c.cu", "__pycache__/a.pyc", ".hidden"):
        (tmp_path / name).write_text(name)
    command = "sha256sum a.py b.py kernels/c.cu | sha256sum"
    by_hand = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert digest_of(code_files(tmp_path)) == by_hand.stdout.split()[0]
    (tmp_path / "a.py").write_text("other")
    assert digest_of(code_files(tmp_path)) != by_hand.stdout.split()[0]


def test_no_folder_has_no_digest(tmp_path: Path) -> None:
    assert digest_of(code_files(tmp_path / "absent")) == digest_of(code_files(tmp_path)) == ""


def test_a_folder_deeper_than_a_path_can_be_long_is_named(tmp_path: Path) -> None:
    here, name = os.open(".", os.O_RDONLY), "d" * 200
    try:
        os.chdir(tmp_path)
        for _ in range(25):
            os.mkdir(name)  # noqa: PTH102 - its path cannot be said at once
            os.chdir(name)
    finally:
        os.fchdir(here)
        os.close(here)
    with pytest.raises(FlagPerfError, match="File name too long") as caught:
        code_files(tmp_path)
    assert (
        caught.value.where.startswith(str(tmp_path)) and len(caught.value.where) < 250 and caught.value.remedy
    )
    subprocess.run(["rm", "-rf", tmp_path / name], check=True)
