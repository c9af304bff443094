"""docs/results.md holds the tables that the registries make."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import result_tables
from utils.figures import DEFINITIONS
from utils.records import FailureClass, Verdict

RESULTS_MD = Path(__file__).parents[1] / "docs" / "results.md"


def test_the_tables_in_the_docs_are_those_of_the_registries() -> None:
    text = RESULTS_MD.read_text(encoding="utf-8")
    command = ".venv/bin/python scripts/result_tables.py docs/results.md"
    assert result_tables.with_tables(text) == text, command


def test_the_command_writes_every_entry_between_its_markers(tmp_path: Path) -> None:
    path = tmp_path / "results.md"
    text = RESULTS_MD.read_text(encoding="utf-8")
    path.write_text(
        text.replace("| `p_train` | samples/s |", "| `p_old` | samples/s |").replace(
            "| `deadline` |", "| `x` |"
        )
    )
    assert result_tables.main([str(path)]) == 0
    assert path.read_text(encoding="utf-8") == text
    for name in (*DEFINITIONS, *(each.value for each in (*Verdict, *FailureClass))):
        assert f"| `{name}` |" in text


def test_markers_that_are_gone_are_told() -> None:
    with pytest.raises(ValueError, match="table of figures"):
        result_tables.with_tables("# Results\n")
