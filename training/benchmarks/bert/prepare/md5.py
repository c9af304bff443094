"""Check text files against a list of MD5 sums, as MLPerf publishes one for its Wikipedia text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from utils.errors import FlagPerfError, Problem, ProblemsError


def check(files: Sequence[Path], sums: Path, workers: int) -> None:
    """ProblemsError naming every one of `files` that differs from its line in `sums`, or has none there."""
    listed = _read(sums)
    with ThreadPoolExecutor(workers) as pool:
        digests = list(pool.map(_md5_of, files))
    problems = [
        Problem(
            str(path), "MD5", digest, f"{sums} says {listed.get(path.name, 'nothing of this file')}", _REMEDY
        )
        for path, digest in zip(files, digests, strict=True)
        if listed.get(path.name) != digest
    ]
    if problems:
        raise ProblemsError(problems)


_REMEDY = "get the file again, or leave --text-md5 away"


def _read(sums: Path) -> dict[str, str]:
    """File name -> MD5, from lines `<md5>  <path>` (the output of md5sum)."""
    listed: dict[str, str] = {}
    try:
        lines = sums.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FlagPerfError(f"cannot be read: {error}", where=str(sums), remedy=_REMEDY) from None
    for number, line in enumerate(lines, start=1):
        match = re.fullmatch(r"([0-9a-fA-F]{32}) [ *](.+)", line)
        if match:
            listed[Path(match[2]).name] = match[1].lower()
        elif line.strip():
            raise FlagPerfError(
                f"not a line of md5sum: {line[:80]!r}", where=f"{sums}, line {number}", remedy=_REMEDY
            )
    return listed


def _md5_of(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    try:
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise FlagPerfError(f"cannot be read: {error.strerror}", where=str(path), remedy=_REMEDY) from None
    return digest.hexdigest()
