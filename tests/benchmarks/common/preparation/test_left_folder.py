"""What a preparation finds at the name of its own folder: gone on with where this user left it, else left alone."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks.common.preparation import left_folder
from benchmarks.common.preparation.partial import PartialDataset, ResumableError
from benchmarks.digits.prepare.__main__ import DigitsPreparation, Parameters
from utils import manifest

NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away, which only root can")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A data set's place in a folder as /tmp."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    return shared / "digits"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder of the user's own, where nothing may be altered."""
    folder = tmp_path / "own"
    for name in ("file", "data/results", "work/thesis"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("precious")
    return folder


def partial_of(out: Path) -> PartialDataset:
    return PartialDataset.of(out, Parameters().recipe(workers=1))


def prepare(out: Path) -> int:
    return DigitsPreparation().main(["--out", str(out), "--workers", "1"])


def plant_finished(partial: PartialDataset) -> None:
    """Files that were never made of the digits, and a record that says they were."""
    partial.data.mkdir(parents=True)
    for name in ("training.npy", "held_out.npy"):
        np.save(partial.data / name, np.zeros((2, 65), "uint8"))
    files = manifest.describe(partial.data, ["training.npy", "held_out.npy"])
    record = partial.work / "finished_steps" / "digits.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"facts": {}, "files": [asdict(entry) for entry in files]}))


def _links_to_files(partial: PartialDataset, own: Path) -> None:
    partial.data.mkdir(parents=True)
    (partial.folder / "lock").symlink_to(own / "file")
    (partial.data / "training.npy").symlink_to(own / "data" / "results")


def _finished(partial: PartialDataset, own: Path) -> None:
    plant_finished(partial)


def _link_to_the_folder(partial: PartialDataset, own: Path) -> None:
    partial.folder.symlink_to(own)


def _links_to_folders(partial: PartialDataset, own: Path) -> None:
    partial.folder.mkdir()
    partial.data.symlink_to(own / "data")
    partial.work.symlink_to(own / "work")


def _file(partial: PartialDataset, own: Path) -> None:
    partial.folder.touch()


def give_away(path: Path) -> None:
    for each in (path, *(path.rglob("*") if path.is_dir() and not path.is_symlink() else ())):
        os.chown(each, NOBODY, NOBODY, follow_symlinks=False)


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()
    }


@only_root
@pytest.mark.parametrize(
    "plant",
    [_links_to_files, _finished, _link_to_the_folder, _links_to_folders, _file],
    ids=lambda it: it.__name__,
)
def test_what_another_user_planted_is_neither_used_nor_touched(
    out: Path,
    own: Path,
    plant: Callable[[PartialDataset, Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    partial, before = partial_of(out), contents(own)
    plant(partial, own)
    give_away(partial.folder)
    there = sorted(out.parent.rglob("*"))
    assert prepare(out) == 1
    assert "move it away, or name another --out" in capsys.readouterr().err
    assert contents(own) == before
    assert sorted(out.parent.rglob("*")) == there, "nothing is removed, and nothing is made"
    partial.folder.rename(out.parent / "away")
    assert prepare(out) == 0
    assert np.load(out / "training.npy").any()


@pytest.mark.parametrize("part", ["", "data", "work"])
def test_what_others_may_have_written_to_is_not_gone_on_with(
    out: Path, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    partial = partial_of(out)
    plant_finished(partial)
    (partial.folder / part).chmod(0o775)
    assert prepare(out) == 1
    assert f"{partial.folder / part}: may be written to by others" in capsys.readouterr().err


@pytest.mark.parametrize("part", ["data", "work"])
def test_a_link_in_a_folder_of_the_users_own_is_not_followed_either(
    out: Path, own: Path, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    partial, before = partial_of(out), contents(own)
    partial.folder.mkdir(mode=0o700)
    (partial.folder / part).symlink_to(own / part)
    assert prepare(out) == 1
    assert f"{partial.folder / part}: is a link, or no folder" in capsys.readouterr().err
    assert contents(own) == before


def test_a_lock_that_is_a_link_is_not_followed(
    out: Path, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partial, before = partial_of(out), contents(own)
    partial.folder.mkdir(mode=0o700)
    (partial.folder / "lock").symlink_to(own / "file")
    assert prepare(out) == 1
    assert f"{partial.folder}: cannot be written" in capsys.readouterr().err
    assert contents(own) == before


def break_off(partial: PartialDataset) -> None:
    """A preparation that is stopped after its one step."""
    with pytest.raises(ResumableError), partial.opened():
        partial.step("digits", [partial.data / "training.npy", partial.data / "held_out.npy"], _zeros)
        raise ResumableError("a worker died")


def _zeros(paths: object) -> dict[str, int]:
    assert isinstance(paths, list)
    for path in paths:
        np.save(path, np.zeros((2, 65), "uint8"))
    return {}


def test_ones_own_is_gone_on_with_in_a_folder_of_a_group(tmp_path: Path) -> None:
    """As groups share them: its files are the group's, who may write; reached by a link of the user's own."""
    (tmp_path / "group").mkdir()
    (tmp_path / "group").chmod(0o2775)
    (tmp_path / "data").symlink_to("group")
    before = os.umask(0o002)
    try:
        break_off(partial_of(tmp_path / "group" / "digits"))
        assert stat.S_IMODE(partial_of(tmp_path / "group" / "digits").folder.stat().st_mode) & 0o777 == 0o700
        assert prepare(tmp_path / "data" / "digits") == 0
    finally:
        os.umask(before)
    made = tmp_path / "group" / "digits"
    assert not np.load(made / "training.npy").any(), "what the first run left"
    assert stat.S_IMODE(made.stat().st_mode) == 0o2775, "the data set itself is as open as any other folder"


def test_a_folder_of_an_earlier_version_is_gone_on_with(out: Path) -> None:
    """Others could read it, and write nowhere in it."""
    partial = partial_of(out)
    plant_finished(partial)
    for each in (partial.folder, partial.data, partial.work):
        each.chmod(0o755)
    assert prepare(out) == 0
    assert not np.load(out / "training.npy").any()


@only_root
def test_where_a_server_makes_roots_files_nobodys_root_goes_on(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As NFS does with root_squash. FAKE: no server; what is made has been given to nobody."""
    partial = partial_of(out)
    break_off(partial)
    give_away(partial.folder)
    assert prepare(out) == 1
    monkeypatch.setattr(left_folder, "_user_in", lambda folder: NOBODY)
    assert prepare(out) == 0


def test_what_cannot_be_removed_is_told_and_the_data_set_is_made(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(39, "Directory not empty", str(path))  # of a file that is still open on NFS

    monkeypatch.setattr("benchmarks.common.preparation.partial.shutil.rmtree", refuse)
    assert prepare(out) == 0
    assert f"{partial_of(out).folder}: cannot be removed" in capsys.readouterr().err
    assert np.load(out / "training.npy").any()
