"""docs/fault-matrix.md holds every row, and what was seen there is what was expected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import fault_matrix
from tests.run_benchmarks.faults.rows import ROWS


def test_every_row_was_seen_as_it_is_expected() -> None:
    text = fault_matrix.PAGE.read_text(encoding="utf-8")
    shown = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    assert [cells[:3] for cells in shown] == [[row.fault, row.where, row.expected] for row in ROWS]
    for row, cells in zip(ROWS, shown, strict=True):
        assert row.agrees(cells[3]), row.key
    assert all(float(cells[4]) >= 0 for cells in shown)


def test_no_two_rows_are_the_same() -> None:
    assert len({row.key for row in ROWS}) == len({(row.fault, row.where) for row in ROWS}) == len(ROWS)


def test_a_row_that_has_not_run_is_shown_as_such(tmp_path: Path) -> None:
    record = {"seen": "FAILED", "seconds": 1.6}
    (tmp_path / f"{ROWS[0].key}.json").write_text(json.dumps(record), encoding="utf-8")
    first, second, *_ = fault_matrix.table(tmp_path).rows
    assert (first[3:], second[3:]) == (("FAILED", "2"), (fault_matrix.NOT_RUN, ""))


def test_markers_that_are_gone_are_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="table of faults"):
        fault_matrix.with_table("# Faults\n", fault_matrix.table(tmp_path))
