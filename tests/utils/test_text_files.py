"""Text of strangers: a line without an end does not fill the memory."""

from __future__ import annotations

from pathlib import Path

from utils.text_files import LONGEST_LINE, lines_of


def test_a_line_longer_than_the_longest_comes_in_parts(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x" * (LONGEST_LINE + 5) + "\nlast")
    assert [len(line) for line in lines_of(tmp_path / "log")] == [LONGEST_LINE, 6, 4]
