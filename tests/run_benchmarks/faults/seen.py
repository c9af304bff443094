"""pytest's part in the fault matrix: which rows run, and what was seen of each.

A test of rows carries their marks, `fault(key)`, and asks for the fixture `seen`. Rows that are not quick are left out
unless `--faults FOLDER` is given; then each row leaves a record there, of which `scripts/fault_matrix.py` makes the
table.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.run_benchmarks.faults.rows import ROWS, Row

OPTION = "--faults"
OF_KEY = {row.key: row for row in ROWS}


def fault(key: str) -> pytest.MarkDecorator:
    """The mark of a test that makes the fault of a row."""
    return pytest.mark.fault(OF_KEY[key])


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--faults`, for all rows."""
    parser.addoption(
        OPTION, metavar="FOLDER", help="run slow rows of the fault matrix too; records go to FOLDER"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rows for which the ordinary suite has no time."""
    if config.getoption(OPTION):
        return
    left_out = [item for item in items if (row := row_of(item)) and not row.is_quick]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def row_of(item: pytest.Item) -> Row | None:
    """The row that a test makes, if it makes one."""
    mark = item.get_closest_marker("fault")
    return mark.args[0] if mark else None


class Seen:
    """What a test sees of its fault. It says when it `made` the fault, and which `run` came of it."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.made_at: float | None = None
        self.text = ""
        self.seconds = 0.0

    def made(self, at: float | None = None) -> None:
        """The fault is made now, or was `at` (seconds since the epoch)."""
        self.made_at = time.time() if at is None else at

    def run(self, folder: Path | None, number: int = 0) -> None:
        """A run has ended: what its folder says of round `number`, counted from 0."""
        assert folder is not None, "the run has no folder"
        assert self.made_at is not None, "nobody said when the fault was made"
        self.text = text_of(folder, number)
        self.seconds = _written_at(folder, number) - self.made_at
        assert self.row.agrees(self.text), f"expected: {self.row.expected}; seen: {self.text}"


def text_of(folder: Path, number: int = 0) -> str:
    """How a round of a run ended, or why there is none: what `expected` of a row holds."""
    summary = _loaded(folder / "summary.json")
    if not summary["rounds"]:
        errors = [
            (check.get("failure_class") or check["name"], host)
            for host, check in _checks(summary)
            if check["status"] == "error"
        ]
        return f"exit {summary['exit_code']}: {', '.join(errors[0])}"
    result = summary["rounds"][number]
    failure = result["failure"] or {}
    words = (result["verdict"], failure.get("class"), failure.get("host"))
    return ", ".join(filter(None, words))


def _checks(summary: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for host, checks in summary["preflight"].items():
        yield from ((host, check) for check in checks)


def _written_at(folder: Path, number: int) -> float:
    """When the verdict was there, in seconds since the epoch."""
    summary = folder / "summary.json"
    rounds = _loaded(summary)["rounds"]
    if not rounds:
        return summary.stat().st_mtime
    result = rounds[number]
    return (folder / result["case"] / f"round{result['round']}" / "result.json").stat().st_mtime


def _loaded(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


@pytest.fixture
def seen(request: pytest.FixtureRequest) -> Iterator[Seen]:
    """What is to be told of the test's row."""
    row = row_of(request.node)
    assert row, "a test that asks for `seen` is marked with fault(KEY)"
    seen = Seen(row)
    yield seen
    folder = request.config.getoption(OPTION)
    if folder and seen.text:
        Path(folder).mkdir(parents=True, exist_ok=True)
        record = {"seen": seen.text, "seconds": round(seen.seconds, 1)}
        (Path(folder) / f"{row.key}.json").write_text(json.dumps(record), encoding="utf-8")
