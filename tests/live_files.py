"""Looks at a folder that a program changes meanwhile."""

from __future__ import annotations

import glob
from contextlib import suppress
from pathlib import Path


def live_files(folder: Path, pattern: str) -> list[Path]:
    """As `folder.glob(pattern)`, which ends with an error where a folder goes while it looks (Python before 3.13)."""
    return [Path(path) for path in glob.glob(f"{glob.escape(str(folder))}/{pattern}", recursive=True)]  # noqa: PTH207


def any_says(text: str, folder: Path, pattern: str) -> bool:
    """Whether `text` stands in one of them."""
    for path in live_files(folder, pattern):
        with suppress(FileNotFoundError):  # it has gone since
            if text in path.read_text(errors="replace"):
                return True
    return False
