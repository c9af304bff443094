"""Result folders as runs leave them, many at once, without a run: one real one, copied with other names and numbers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from tests.run_benchmarks.written_run import write_run

FIRST = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
CASES = ("toy:pytorch:X1:2:1:1", "bert:pytorch:X1:2:1:1")


def make_runs(
    log_path: Path, count: int, change: Callable[[int, dict[str, Any]], object] = lambda *_: None
) -> list[Path]:
    """So many runs of three rounds (CONVERGED, FAILED, UNREACHABLE) below `log_path`, a day apart, the oldest first.

    Args:
        change: is given the number of the run, from 0, and each of its results, which it may change.
    """
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "run"
        write_run(model)
        files = {path.relative_to(model): path.read_text() for path in model.rglob("*") if path.is_file()}
    return [_copy(files, log_path, number, change) for number in range(count)]


def _copy(
    files: Mapping[Path, str], log_path: Path, number: int, change: Callable[[int, dict[str, Any]], object]
) -> Path:
    begun = FIRST + timedelta(days=number)
    name, case = f"run{begun:%Y%m%d%H%M%S}", CASES[number % len(CASES)]

    def altered(result: dict[str, Any]) -> dict[str, Any]:
        result["started"] = begun.isoformat()
        for figure in result["figures"].values():
            figure["value"] = figure["value"] and figure["value"] * (1 + number / 100)
        change(number, result)
        return result

    for path, text in files.items():
        text = text.replace("run20260102030405", name).replace(CASES[0], case)
        if path.name == "result.json":
            text = json.dumps(altered(json.loads(text)))
        elif path.name == "summary.json":
            summary = json.loads(text)
            rounds = [altered(each) for each in summary["rounds"]]
            text = json.dumps({**summary, "started": begun.isoformat(), "rounds": rounds})
        target = log_path / name / str(path).replace(CASES[0], case)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return log_path / name
