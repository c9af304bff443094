"""A small disk of its own for results, which a test can fill."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A new folder with so much room, in tmpfs' notation; the test is skipped where nobody may mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
