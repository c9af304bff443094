"""Steps are made once, resumed, checked, and never leave a half-made file in the data set."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from utils.errors import FlagPerfError
from utils.manifest import sha256_of
from utils.preparation.workshop import Facts, Workshop

RECIPE = {"seed": 1, "shards": 2}


def writer(made: list[str], content: str) -> Callable[[Sequence[Path]], Facts]:
    """Makes every output of a step, and notes that it did."""

    def make(paths: Sequence[Path]) -> Facts:
        for path in paths:
            path.write_text(content)
        made.append(content)
        return {"content": content}

    return make


def test_a_step_is_made_once_and_its_record_gives_facts_and_files(tmp_path: Path) -> None:
    made: list[str] = []
    outputs = [tmp_path / "a", tmp_path / "folder" / "b"]
    with Workshop(tmp_path).opened(RECIPE):
        first = Workshop(tmp_path).step("one", outputs, writer(made, "text"))
    with Workshop(tmp_path).opened(RECIPE):
        second = Workshop(tmp_path).step("one", outputs, writer(made, "text"))
    assert first == second
    assert made == ["text"]
    assert first.facts == {"content": "text"}
    assert [(entry.path, entry.bytes, entry.sha256) for entry in first.files] == [
        ("a", 4, sha256_of(outputs[0])),
        ("folder/b", 4, sha256_of(outputs[1])),
    ]


@pytest.mark.parametrize(
    "damage", [Path.unlink, lambda path: path.write_text("tex"), lambda p: p.write_text("TEXT")]
)
def test_a_step_whose_file_is_gone_short_or_altered_is_made_again(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    made: list[str] = []
    workshop = Workshop(tmp_path)
    workshop.step("one", [tmp_path / "a", tmp_path / "b"], writer(made, "text"))
    damage(tmp_path / "b")
    workshop.step("one", [tmp_path / "a", tmp_path / "b"], writer(made, "text"))
    assert made == ["text", "text"]
    assert (tmp_path / "b").read_text() == "text"


def test_a_step_that_fails_leaves_nothing_in_the_data_set(tmp_path: Path) -> None:
    def fail(paths: Sequence[Path]) -> Facts:
        paths[0].write_text("half")
        raise FlagPerfError("bad input")

    workshop = Workshop(tmp_path)
    with pytest.raises(FlagPerfError):
        workshop.step("one", [tmp_path / "a"], fail)
    assert [path.name for path in tmp_path.iterdir()] == [".prepare"]
    made: list[str] = []
    workshop.step("one", [tmp_path / "a"], writer(made, "whole"))
    assert (tmp_path / "a").read_text() == "whole"


def test_a_disk_that_takes_no_more_is_told_with_the_step_and_the_file_is_not_kept(tmp_path: Path) -> None:
    """The limit on a file's size stands for the full disk: the write fails in the same way."""

    def large(paths: Sequence[Path]) -> Facts:
        paths[0].write_bytes(b"x" * 200_000)
        return {}

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(FlagPerfError, match="the files of step one cannot be written"):
            Workshop(tmp_path).step("one", [tmp_path / "a"], large)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "a").exists()
    assert len(Workshop(tmp_path).step("one", [tmp_path / "a"], large).files) == 1


def test_another_recipe_is_refused_naming_what_differs_and_restart_discards(tmp_path: Path) -> None:
    made: list[str] = []
    with Workshop(tmp_path).opened(RECIPE):
        Workshop(tmp_path).step("one", [tmp_path / "a"], writer(made, "old"))
    other = {**RECIPE, "seed": 2, "text": ["x" * 1000]}
    with (
        pytest.raises(FlagPerfError, match="seed is 1 there, 2 asked") as error,
        Workshop(tmp_path).opened(other),
    ):
        pass
    assert "shards" not in error.value.message
    assert len(error.value.message) < 400
    assert "--restart" in error.value.remedy
    with Workshop(tmp_path).opened(other, restart=True):
        Workshop(tmp_path).step("one", [tmp_path / "a"], writer(made, "new"))
    assert made == ["old", "new"]


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with (
        Workshop(tmp_path).opened(RECIPE),
        pytest.raises(FlagPerfError, match="another preparation is at work"),
        Workshop(tmp_path).opened(RECIPE),
    ):
        pass


def test_clear_leaves_the_data_set(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Workshop(out).opened(RECIPE):
        Workshop(out).step("one", [out / "a"], writer([], "text"))
        Workshop(out).clear()
    assert [path.name for path in out.iterdir()] == ["a"]


def test_an_output_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(FlagPerfError, match="cannot be written"),
        Workshop(tmp_path / "file" / "out").opened(RECIPE),
    ):
        pass
