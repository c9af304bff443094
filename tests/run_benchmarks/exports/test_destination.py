"""A new file: there as a whole or not at all, never over another one, on any file system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from run_benchmarks.exports.destination import new_file
from utils.errors import FlagPerfError


def test_it_needs_no_links_which_fat_does_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:  # fake: FAT's answer, which needs a disk to mount
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    with new_file(tmp_path / "run.tar.gz") as made:
        made.write_text("whole")
        assert not (tmp_path / "run.tar.gz").exists()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["whole"]


def test_what_came_there_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "run.tar.gz"
    with pytest.raises(FlagPerfError, match="cannot be written: File exists"), new_file(path) as made:
        made.write_text("ours")
        path.write_text("theirs")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["theirs"]
