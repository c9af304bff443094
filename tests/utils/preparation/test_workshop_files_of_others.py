"""The output directory may hold files of the user: none is written over, none removed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from utils import manifest
from utils.errors import FlagPerfError, ProblemsError
from utils.preparation.workshop import Facts, ResumableError, Workshop

RECIPE = {"seed": 1}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def outputs(out: Path) -> list[Path]:
    return [out / "vocab.txt", out / "train" / "a", out / "train" / "b"]


def make(paths: Sequence[Path]) -> Facts:
    for path in paths:
        path.write_text("made")
    return {}


def there(out: Path) -> list[str]:
    return sorted(path.relative_to(out).as_posix() for path in out.rglob("*"))


def begin(out: Path, outputs: Sequence[Path], error: BaseException) -> None:
    """Make all outputs in one step, then fail."""
    with pytest.raises(type(error)), Workshop(out).opened(RECIPE, outputs) as work:
        work.step("one", outputs, make)
        raise error


def test_every_output_that_is_there_already_is_refused_at_once(out: Path, outputs: list[Path]) -> None:
    (out / "train").mkdir(parents=True)
    outputs[0].write_text("mine")
    outputs[2].symlink_to("nowhere")
    with pytest.raises(ProblemsError) as error, Workshop(out).opened(RECIPE, outputs, restart=True):
        pass
    assert [problem.name for problem in error.value.problems] == ["vocab.txt", "train/b"]
    assert "another --out" in str(error.value)
    assert there(out) == ["train", "train/b", "vocab.txt"]
    assert outputs[0].read_text() == "mine"


def test_an_output_that_is_an_input_is_refused_even_if_it_was_made_here(
    out: Path, outputs: list[Path], tmp_path: Path
) -> None:
    begin(out, outputs, ResumableError("the disk is full"))
    link = tmp_path / "link"
    link.symlink_to(outputs[0])
    with (
        pytest.raises(ProblemsError, match="is an input"),
        Workshop(out).opened(RECIPE, outputs, inputs=[link], restart=True),
    ):
        pass
    assert all(path.exists() for path in outputs)


def test_a_file_that_came_meanwhile_is_not_written_over(out: Path, outputs: list[Path]) -> None:
    with pytest.raises(ProblemsError, match="train/a"), Workshop(out).opened(RECIPE, outputs) as work:
        (out / "train").mkdir()
        (out / "train" / "a").write_text("mine")
        work.step("one", outputs, make)
    assert there(out) == ["train", "train/a"]
    assert (out / "train" / "a").read_text() == "mine"


def test_bad_input_removes_what_was_made_and_nothing_else(out: Path, outputs: list[Path]) -> None:
    begin(out, outputs, FlagPerfError("bad input"))
    assert not out.exists()
    (out / "train").mkdir(parents=True)
    (out / "model.ckpt").write_text("mine")
    begin(out, outputs, FlagPerfError("bad input"))
    assert there(out) == ["model.ckpt", "train"]
    (out / "model.ckpt").unlink()
    (out / "train").rmdir()
    begin(out, outputs, FlagPerfError("bad input"))
    assert out.is_dir() and there(out) == [], "the folder was there before"


def test_what_was_made_is_kept_after_a_failure_that_is_not_the_inputs(out: Path, outputs: list[Path]) -> None:
    begin(out, outputs, ResumableError("the disk is full"))
    begin(out, outputs, KeyboardInterrupt())
    with pytest.raises(FlagPerfError), Workshop(out).opened(RECIPE, outputs) as work:
        work.keep()
        raise FlagPerfError("too little room")
    assert all(path.exists() for path in outputs)
    begin(out, outputs, FlagPerfError("bad input"))
    assert not out.exists(), "an earlier run made it"


def test_a_run_that_was_killed_before_its_files_got_their_places_goes_on(
    out: Path, outputs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kill is a KeyboardInterrupt within the second renaming: the first file stands, the others do not."""
    original, renamed = Path.replace, list[Path]()

    def replace(self: Path, target: Path) -> Path:
        if self.parent.name == "unfinished":
            if renamed:
                raise KeyboardInterrupt
            renamed.append(target)
        return original(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(KeyboardInterrupt), Workshop(out).opened(RECIPE, outputs) as work:
        work.step("one", outputs, make)
    assert [path.exists() for path in outputs] == [True, False, False]
    monkeypatch.undo()
    with Workshop(out).opened(RECIPE, outputs) as work:
        assert len(work.step("one", outputs, make).files) == 3


def test_a_data_set_that_is_made_again_keeps_what_its_manifest_lists(out: Path, outputs: list[Path]) -> None:
    with Workshop(out).opened(RECIPE, outputs) as work:
        done = work.step("one", outputs, make)
        manifest.write(out, manifest.Manifest("test", "1", RECIPE, {}, done.files))
        work.clear()
    outputs[1].write_text("damaged")
    begin(out, outputs, FlagPerfError("bad input"))
    assert [path.read_text() for path in outputs] == ["made"] * 3
    assert not (out / ".prepare").exists()


def test_restart_removes_what_was_begun_from_the_data_set_too(out: Path, outputs: list[Path]) -> None:
    begin(out, outputs, ResumableError("the disk is full"))
    (out / "train" / "mine").touch()
    with Workshop(out).opened({"seed": 2}, outputs[:1], restart=True):
        pass
    assert [name for name in there(out) if not name.startswith(".")] == ["train", "train/mine"]


def test_a_hidden_folder_of_somebody_else_is_left_alone(out: Path, outputs: list[Path]) -> None:
    (out / ".prepare").mkdir(parents=True)
    (out / ".prepare" / "notes").write_text("mine")
    with pytest.raises(FlagPerfError, match="is no folder of a preparation"), Workshop(out).opened(RECIPE):
        pass
    assert there(out) == [".prepare", ".prepare/notes"]
