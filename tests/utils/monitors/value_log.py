"""What stands in a log of one value a line, for the tests: the program itself computes from telemetry.jsonl."""

from __future__ import annotations

from pathlib import Path


def logged_values(path: Path) -> list[float | None]:
    """The values of `cpu_`, `mem_` or `pwr_monitor.log`, notes left out; None for `N/A`."""
    lines = (line for line in path.read_text().splitlines() if not line.startswith("#"))
    return [None if (shown := line.split("\t")[1]) == "N/A" else float(shown) for line in lines]
