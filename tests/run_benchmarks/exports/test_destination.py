"""A new file: there as a whole or not at all, never over another one, on any file system."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from run_benchmarks.exports.destination import new_file, new_folder
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


@pytest.mark.parametrize(
    ("name", "endings", "right"),
    [
        ("x.csv", (".html", ".htm"), "x.html"),
        ("x", (".html", ".htm"), "x.html"),
        ("run.zip", (".tar.gz", ".tgz"), "run.tar.gz"),
        ("x.html", (".txt", ""), "x.txt"),
    ],
)
def test_a_name_that_is_another_files_is_refused_with_the_right_one(
    name: str, endings: tuple[str, ...], right: str, tmp_path: Path
) -> None:
    with pytest.raises(FlagPerfError, match="is to end in") as refused, new_file(tmp_path / name, endings):
        pass
    assert refused.value.remedy == f"name it {tmp_path / right}"
    with new_file(tmp_path / right.upper(), endings) as made:
        made.write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == [right.upper()]
    with pytest.raises(FlagPerfError, match="is to be a folder"), new_folder(tmp_path / "tables.csv"):
        pass


@pytest.mark.parametrize("new", [new_file, new_folder])
def test_nothing_is_made_where_others_may_put_a_link_in_its_place(
    new: Callable[[Path], AbstractContextManager[Path]], tmp_path: Path
) -> None:
    """What was written went through it, into any folder of the user's."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(FlagPerfError, match="everybody may put something else") as refused:
        new(shared / "out").__enter__()
    assert refused.value.where == str(shared)
    assert refused.value.remedy == f"chmod o-w {shared}, or name another place"
    shared.chmod(0o1777)  # as /tmp: what lies there is renamed by its owner alone
    with new(shared / "out") as made:
        made.touch()
    assert [path.name for path in shared.iterdir()] == ["out"]


def test_no_folder_is_made_on_the_way(tmp_path: Path) -> None:
    for new in (new_file, new_folder):
        with pytest.raises(FlagPerfError, match=f"there is no folder {tmp_path}/misspelt"):
            new(tmp_path / "misspelt" / "out").__enter__()
    assert list(tmp_path.iterdir()) == []
