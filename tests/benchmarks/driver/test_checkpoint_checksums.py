"""What may stand in a checkpoint's checksum file, and what a right checksum does not prove."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.driver.checkpoint_files import read_newest, write_checkpoint

OLDER, NEWER = "step00000001.ckpt", "step00000002.ckpt"


def write(folder: Path, step: int, content: bytes) -> None:
    def save(path: Path) -> None:
        path.write_bytes(content)

    write_checkpoint(folder, step, save)


def test_an_empty_one_is_passed_over_though_its_checksum_is_right(tmp_path: Path) -> None:
    write(tmp_path, 1, b"whole")
    write(tmp_path, 2, b"")
    assert read_newest(tmp_path) == (tmp_path / OLDER, b"whole", (f"{NEWER} is empty",))


def of_binary_mode(folder: Path, name: str) -> str:
    command = ["sha256sum", "--binary", name]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def of_a_path(folder: Path, name: str) -> str:
    return of_binary_mode(folder, f"./{name}")


def in_upper_case(folder: Path, name: str) -> str:
    digest, *rest = (folder / f"{name}.sha256").read_text().split()
    return f"{digest.upper()}  {' '.join(rest)}\n"


@pytest.mark.parametrize("line_of", [of_binary_mode, of_a_path, in_upper_case])
def test_any_line_that_sha256sum_checks_will_do(tmp_path: Path, line_of: Callable[[Path, str], str]) -> None:
    write(tmp_path, 2, b"whole")
    checksum = tmp_path / f"{NEWER}.sha256"
    written = checksum.read_text()
    checksum.write_text(line_of(tmp_path, NEWER))
    assert checksum.read_text() != written
    subprocess.run(["sha256sum", "--check", checksum.name], cwd=tmp_path, check=True)
    assert read_newest(tmp_path) == (tmp_path / NEWER, b"whole", ())
