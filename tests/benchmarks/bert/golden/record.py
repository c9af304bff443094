"""Writes what an original gave, with where it is from."""

from __future__ import annotations

import json
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np


def provenance(checkout: Path, files: list[str], packages: list[str], made_by: str) -> dict[str, Any]:
    """Which code gave the numbers, in which software."""
    commit = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    software = {name: version(name) for name in packages} | {"python": platform.python_version()}
    return {"commit": commit, "files": files, "software": software, "made_by": made_by}


def rounded(values: Any) -> Any:
    """Numbers, or nests of them, to eight digits."""
    if isinstance(values, dict):
        return {name: rounded(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [rounded(value) for value in values]
    if isinstance(values, str):
        return values
    array = np.asarray(values, dtype=np.float64)
    return [rounded(value) for value in array] if array.ndim else float(f"{array:.8g}")


def write(path: Path, source: dict[str, Any], values: dict[str, Any]) -> None:
    """A line per value, so that what changes can be seen."""
    lines = [f" {json.dumps(name)}: {json.dumps(rounded(value))}" for name, value in values.items()]
    body = ",\n".join([f' "provenance": {json.dumps(source, indent=1)}', *lines])
    path.write_text(f"{{\n{body}\n}}\n", encoding="utf-8")
