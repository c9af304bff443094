"""A data set in the making: steps are made once, one run at a time, and the target is only ever renamed to."""

from __future__ import annotations

import fcntl
import resource
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks.common.preparation.partial import Facts, PartialDataset, ResumableError
from benchmarks.common.preparation.recipe import already_made
from utils.errors import FlagPerfError
from utils.manifest import Manifest, sha256_of

RECIPE = {"seed": 1, "shards": 2}


@pytest.fixture
def partial(tmp_path: Path) -> PartialDataset:
    return PartialDataset.of(tmp_path / "out", RECIPE)


def writer(made: list[str], content: str) -> Callable[[Sequence[Path]], Facts]:
    """Makes every output of a step, and notes that it did."""

    def make(paths: Sequence[Path]) -> Facts:
        for path in paths:
            path.write_text(content)
        made.append(content)
        return {"content": content}

    return make


def test_a_step_is_made_once_and_tells_facts_and_files_of_the_data_set(partial: PartialDataset) -> None:
    made: list[str] = []
    outputs = [partial.data / "a", partial.data / "folder" / "b", partial.work / "scratch"]
    with partial.opened():
        first = partial.step("one", outputs, writer(made, "text"))
        second = partial.step("one", outputs, writer(made, "other"))
        (partial.work / "scratch").unlink()
        partial.step("one", outputs, writer(made, "text"))
    assert made == ["text", "text"], "again only where a file of it is gone"
    assert first == second
    assert first.facts == {"content": "text"}
    assert [(entry.path, entry.bytes, entry.sha256) for entry in first.files] == [
        ("a", 4, sha256_of(outputs[0])),
        ("folder/b", 4, sha256_of(outputs[1])),
    ]


def test_a_step_that_fails_is_made_again(partial: PartialDataset) -> None:
    def fail(paths: Sequence[Path]) -> Facts:
        paths[0].write_text("half")
        raise ResumableError("a worker died")

    with pytest.raises(ResumableError), partial.opened():
        partial.step("one", [partial.data / "a"], fail)
    with partial.opened():
        partial.step("one", [partial.data / "a"], writer([], "whole"))
    assert (partial.data / "a").read_text() == "whole"


def test_a_disk_that_takes_no_more_is_named_with_the_step_and_the_rest_is_kept(
    partial: PartialDataset,
) -> None:
    """The limit on a file's size stands for the full disk: the write fails in the same way."""

    def large(paths: Sequence[Path]) -> Facts:
        paths[0].write_bytes(b"x" * 200_000)
        return {}

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(FlagPerfError, match="the files of step two cannot be written"), partial.opened():
        partial.step("one", [partial.data / "a"], writer([], "text"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            partial.step("two", [partial.data / "b"], large)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    made: list[str] = []
    with partial.opened():
        partial.step("one", [partial.data / "a"], writer(made, "again"))
        assert made == []
        assert len(partial.step("two", [partial.data / "b"], large).files) == 1


def test_bad_input_removes_the_folder_and_other_failures_keep_it(partial: PartialDataset) -> None:
    for error, stays in ((FlagPerfError, False), (ResumableError, True), (KeyboardInterrupt, True)):
        with pytest.raises(error), partial.opened():
            raise error("why")
        assert partial.folder.exists() == stays


def test_another_recipe_is_built_elsewhere(partial: PartialDataset) -> None:
    other = PartialDataset.of(partial.target, {**RECIPE, "seed": 2})
    assert other.folder != partial.folder
    assert PartialDataset.of(partial.target, dict(reversed(RECIPE.items()))) == partial


def test_one_run_at_a_time(partial: PartialDataset) -> None:
    with (
        partial.opened(),
        pytest.raises(FlagPerfError, match="another preparation is at work"),
        PartialDataset.of(partial.target, RECIPE).opened(),
    ):
        pass
    assert partial.folder.exists(), "it belongs to the run that holds it"


def finish(partial: PartialDataset) -> None:
    with partial.opened():
        done = partial.step("one", [partial.data / "a"], writer([], "text"))
        partial.finish(Manifest("toy", "1", RECIPE, {}, done.files))


def assert_held(partial: PartialDataset) -> None:
    with pytest.raises(ResumableError, match="another preparation is at work"), partial.opened():
        pass


def test_a_lock_that_was_removed_before_it_was_taken_is_not_relied_on(
    partial: PartialDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run ends between the opening of the lock file and its locking; a third one comes later."""
    flock = fcntl.flock

    def late(file: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        finish(partial)
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with partial.opened():
        assert_held(partial)


def test_nobody_builds_in_a_folder_that_is_being_removed(
    partial: PartialDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[Path] = []
    remove = shutil.rmtree

    def slow(path: Path) -> None:
        remove(path)
        assert_held(partial)
        removed.append(path)

    monkeypatch.setattr(shutil, "rmtree", slow)
    finish(partial)
    assert removed == [partial.work]
    assert list(partial.target.parent.iterdir()) == [partial.target]


def test_the_finished_data_set_gets_its_name_and_nothing_else_is_left(partial: PartialDataset) -> None:
    finish(partial)
    assert sorted(path.name for path in partial.target.iterdir()) == ["a", "manifest.json"]
    assert list(partial.target.parent.iterdir()) == [partial.target]
    assert already_made(partial.target, RECIPE, workers=1)


def test_what_came_to_the_target_meanwhile_is_not_written_over(partial: PartialDataset) -> None:
    partial.target.mkdir()
    (partial.target / "notes").write_text("mine")
    with pytest.raises(ResumableError, match="cannot get its name"):
        finish(partial)
    assert [path.name for path in partial.target.iterdir()] == ["notes"]
    (partial.target / "notes").unlink()
    finish(partial)
    assert already_made(partial.target, RECIPE, workers=1)


def test_a_manifest_that_cannot_be_written_keeps_what_is_made(partial: PartialDataset) -> None:
    (partial.data / "manifest.json").mkdir(parents=True)
    partial.folder.chmod(0o700)
    with pytest.raises(ResumableError, match="the manifest cannot be written"):
        finish(partial)
    (partial.data / "manifest.json").rmdir()
    finish(partial)
    assert already_made(partial.target, RECIPE, workers=1)


def test_a_mount_point_is_refused_before_anything_is_made() -> None:
    with pytest.raises(FlagPerfError, match="is a mount point"):
        already_made(Path("/proc"), RECIPE, workers=1)
