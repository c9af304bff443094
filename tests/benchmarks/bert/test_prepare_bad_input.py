"""Bad input names file and line (exit 1), wrong arguments the option (exit 2); nothing half-written stays."""

from __future__ import annotations

import hashlib
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import h5py
import pytest

from benchmarks.bert.prepare.command import main
from tests.benchmarks.bert.prepare_data import (
    eval_file,
    prepare,
    training_files,
    write_text,
)
from tests.benchmarks.common.preparation.prepared_cases import contents

GOOD = "".join(f"a good sentence {number}\n\n" for number in range(50)).encode()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("name", "content", "place", "why"),
    [
        ("text", GOOD + b"caf\xe9\n", ", line 101", "not UTF-8"),
        ("text", "sentence\n".encode("utf-16"), ", line 1", "NUL byte: this is UTF-16"),
        ("text", "sentence\n".encode("utf-16-le"), ", line 1", "NUL byte"),
        ("text", b"", "", "holds no text"),
        ("text", b"\n \n\n", "", "holds no text"),
        ("text.xz", lzma.compress(GOOD)[:-20], "", "cannot be read after line"),
        ("text.xz", GOOD, "", "cannot be read after line 0"),
    ],
)
def test_malformed_text_names_file_and_line_and_leaves_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    workers: int,
    name: str,
    content: bytes,
    place: str,
    why: str,
) -> None:
    good, bad = tmp_path / "good", tmp_path / name
    good.write_bytes(GOOD)
    bad.write_bytes(content)
    assert prepare([good, bad], tmp_path / "out", "--vocab-size", "120", workers=workers) == 1
    printed = capsys.readouterr().err
    assert f"{bad}{place}: " in printed
    assert why in printed
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--text-md5", "absent"), "absent: cannot be read"),
        (("--vocab", "absent"), "absent: no WordPiece vocabulary"),
        (("--eval-text", "absent"), "absent: cannot be read"),
        (("--vocab-size", "100", "--eval-samples", "100000"), "samples, 100000 are asked"),
        (("--vocab-size", "100", "--eval-every", "1000"), "the held-out text gives 0 samples"),
    ],
)
def test_what_cannot_be_made_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], why: str
) -> None:
    text = tmp_path / "text"
    text.write_bytes(GOOD)
    assert prepare(text, tmp_path / "out", *arguments) == 1
    assert why in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_too_many_shards_says_how_many_can_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = write_text(tmp_path / "text", range(40))
    assert prepare(text, tmp_path / "out", "--vocab-size", "150", "--shards", "5000") == 1
    assert "do not fill 5000 shards" in capsys.readouterr().err
    assert not (tmp_path / "out" / "2048_shards_uncompressed").exists()
    assert prepare(text, tmp_path / "out", "--vocab-size", "150") == 0


def test_a_full_disk_is_reported_before_the_shards_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fake is of the disk alone: it says that 10 bytes are free."""
    text = write_text(tmp_path / "text", range(40))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10))
    assert prepare(text, tmp_path / "out", "--vocab-size", "150") == 1
    assert "GB are free" in capsys.readouterr().err
    monkeypatch.undo()
    assert prepare(text, tmp_path / "out", "--vocab-size", "150") == 0, "it goes on"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--demo", "--out", "y", "--eval-text", "x"], "leave --eval-text away"),
        (["--demo", "--out", "y", "--mask-prob", "1.5"], "--mask-prob = 1.5: out of range"),
        (["--demo", "--out", "y", "--max-predictions", "65"], "--max-predictions = 65: out of range"),
    ],
)
def test_wrong_arguments_exit_2(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert why in capsys.readouterr().err


def test_text_is_checked_against_its_md5_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, sums = write_text(tmp_path / "part-00000", range(40)), tmp_path / "md5.txt"
    digest = hashlib.md5(text.read_bytes()).hexdigest()
    arguments = ("--vocab-size", "150", "--text-md5", str(sums))
    sums.write_text(f"{'0' * 32}  results4/part-00000\n")
    assert prepare(text, tmp_path / "out", *arguments) == 1
    assert f"{text}: MD5 = {digest}" in capsys.readouterr().err
    sums.write_text(f"{digest}  results4/part-00001\n")
    assert prepare(text, tmp_path / "out", *arguments) == 1
    assert "says nothing of this file" in capsys.readouterr().err
    sums.write_text(f"{digest}  results4/part-00000\nno sum\n")
    assert prepare(text, tmp_path / "out", *arguments) == 1
    assert f"{sums}, line 2: not a line of md5sum" in capsys.readouterr().err
    sums.write_text(f"{digest}  results4/part-00000\n")
    assert prepare(text, tmp_path / "out", *arguments) == 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verify")
    assert prepare(write_text(folder / "text", range(60)), folder / "out", "--vocab-size", "150") == 0
    return folder / "out"


@pytest.fixture
def made(whole: Path, tmp_path: Path) -> Path:
    """A copy of a prepared data set, to be damaged."""
    return shutil.copytree(whole, tmp_path / "out")


def made_elsewhere(made: Path) -> Path:
    """The set as MLPerf's own tools would have left it: no manifest, numbers without leading zeros."""
    (made / "manifest.json").unlink()
    for number, path in enumerate(training_files(made)):
        path.rename(path.with_name(f"part_{number}_of_3.hdf5"))
    return made


def test_a_set_made_elsewhere_gets_a_manifest(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made_elsewhere(made)
    (folder / "bert_config.json").write_text("{}")
    before = contents(folder)
    assert main(["--write-manifest", str(folder), "--workers", "2"]) == 0
    assert main(["--verify", str(folder)]) == 0
    assert "6 files" in capsys.readouterr().out
    after = contents(folder)
    del after["manifest.json"]
    assert after == before


def truncate(made: Path) -> Path:
    path = training_files(made)[1]
    path.write_bytes(path.read_bytes()[:3000])
    return path


def not_hdf5(made: Path) -> Path:
    eval_file(made).write_text("text")
    return eval_file(made)


def shard_missing(made: Path) -> Path:
    training_files(made)[2].unlink()
    return made / "2048_shards_uncompressed"


def other_set(made: Path) -> Path:
    shutil.copy(training_files(made)[0], made / "2048_shards_uncompressed" / "part_0_of_9.hdf5")
    return made / "2048_shards_uncompressed"


def no_evaluation(made: Path) -> Path:
    eval_file(made).unlink()
    return eval_file(made)


def no_training(made: Path) -> Path:
    shutil.rmtree(made / "2048_shards_uncompressed")
    return made / "2048_shards_uncompressed"


def key_missing(made: Path) -> Path:
    with h5py.File(eval_file(made), "a") as file:
        del file["masked_lm_ids"]
    return eval_file(made)


def wrong_shape(made: Path) -> Path:
    with h5py.File(eval_file(made), "a") as file:
        labels = file["next_sentence_labels"][1:]
        del file["next_sentence_labels"]
        file["next_sentence_labels"] = labels
    return eval_file(made)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (truncate, "not a whole HDF5 file"),
        (not_hdf5, "not a whole HDF5 file"),
        (shard_missing, "1 of 3 shards are missing: [2]"),
        (other_set, "shards of several sets: of [3, 9]"),
        (no_evaluation, "there is no evaluation set"),
        (no_training, "there is no training file"),
        (key_missing, "lacks masked_lm_ids"),
        (wrong_shape, "the shapes do not belong together"),
    ],
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_damaged_set_made_elsewhere_is_refused_by_file_name(
    made: Path,
    damage: Callable[[Path], Path],
    why: str,
    workers: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    culprit = damage(made_elsewhere(made))
    assert main(["--write-manifest", str(made), "--workers", workers]) == 1
    printed = capsys.readouterr().err
    assert f"{culprit}: " in printed
    assert why in printed
    assert not (made / "manifest.json").exists()


def test_a_manifest_that_cannot_be_written_is_named(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_elsewhere(made)
    (made / "manifest.json").mkdir()
    assert main(["--write-manifest", str(made), "--workers", "1"]) == 1
    assert f"{made}: the manifest cannot be written: Is a directory" in capsys.readouterr().err
