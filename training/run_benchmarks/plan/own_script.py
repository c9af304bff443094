"""What a training script of a case's own needs, as its text tells: it is never executed here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DRIVER = "driver"


def wants_driver(script: Path) -> bool:
    """Whether it imports a package `driver` that it looks for with a `sys.path` of its own, as in 2022."""
    text = _text(script)
    return "sys.path" in text and bool(re.search(rf"^[ \t]*(from|import) {DRIVER}\b", text, re.MULTILINE))


def driver_of(root: Path, case_dir: Path) -> Path | None:
    """Its own driver package: beside the script or, for a vendor's cases (TEST_TYPE = "customized"), beside all."""
    home = case_dir.parents[1]
    folders = [case_dir] if home == Path("benchmarks") else [case_dir, home]
    return next((root / each / DRIVER for each in folders if (root / each / DRIVER).is_dir()), None)


def takes_vendor(root: Path, case_dir: Path) -> bool:
    """Whether its launch contract has `--vendor`, which it had not before 2023-02-23: does its code speak of it?

    Code that parses no arguments itself, or is not found, may do anything: it is given all.
    """
    folders = [root / case_dir, driver_of(root, case_dir)]
    texts = [text for folder in folders if folder for text in _texts(folder)]
    parsing = [text for text in texts if "add_argument(" in text]
    return not any("--extern_config_file" in text for text in parsing) or any(
        "--vendor" in t for t in parsing
    )


def _texts(folder: Path) -> Iterator[str]:
    return (_text(path) for path in sorted(folder.rglob("*.py")))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
