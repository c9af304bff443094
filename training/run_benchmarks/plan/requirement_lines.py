"""Requirement files of a case, whose bytes name its image: none may lead to what that name knows nothing of."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from run_benchmarks.plan.problems import Problems

# pip's requirements file format: further files, folders of the checkout.
_ELSEWHERE = re.compile(r"\s*(-[rce]|--(requirement|constraint|editable)|\.{1,2}/|\.$)")


def check_requirements(root: Path, files: Iterable[str], problems: Problems) -> None:
    """Note lines of the files below `root` that lead to other files of the checkout."""
    for file in files:
        lines = (root / file).read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            if _ELSEWHERE.match(line):
                message = "leads to another file, and an image that is there would not be made anew when that changes"
                remedy = "write here what stands there"
                problems.add(f"{root / file}:{number}", "requirements", line.strip()[:200], message, remedy)
