"""A preparation that is killed goes on; one that is finished is not made again; others are not mixed in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.benchmarks.bert.prepare_data import SMALL, contents, prepare, training_files, write_text
from utils import manifest
from utils.preparation.workers import Workers

TRAINING = Path(__file__).parents[3] / "training"
COMMAND = (sys.executable, "-m", "benchmarks.bert.prepare")
MANY = ("--vocab-size", "150", "--parts-per-file", "6", "--shards", "60")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "text.txt", range(120))


@pytest.fixture(scope="module")
def unbroken(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unbroken") / "out"
    assert prepare(text, out, *MANY) == 0
    return out


def killed(text: Path, out: Path, after: str) -> None:
    """Start the command with two workers and kill -9 it when the record of step `after` stands."""
    process = subprocess.Popen(
        [*COMMAND, "--text", str(text), "--out", str(out), "--workers", "2", *SMALL, *MANY],
        env={**os.environ, "PYTHONPATH": str(TRAINING)},
        stderr=subprocess.DEVNULL,
    )
    record = out / ".prepare" / "done" / f"{after}.json"
    while not record.exists():
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("after", ["split_00000", "part_f00000_p0001", "shard_00003"])
def test_a_killed_preparation_goes_on_and_makes_the_same_files(
    text: Path, unbroken: Path, tmp_path: Path, after: str
) -> None:
    out = tmp_path / "out"
    killed(text, out, after)
    assert not (out / "manifest.json").exists()
    finished = {
        path: path.stat().st_mtime_ns for path in [out / "vocab.txt", *out.glob("*/*.hdf5")] if path.exists()
    }
    whole = contents(unbroken)
    for path in finished:
        assert path.read_bytes() == whole[path.relative_to(out).as_posix()], "half-written"
    recorded = {path.stem for path in (out / ".prepare" / "done").iterdir()}
    assert prepare(text, out, *MANY, workers=2) == 0
    assert contents(out) == whole
    for path, time_ns in finished.items():
        if f"shard_{path.name[5:10]}" in recorded:
            assert path.stat().st_mtime_ns == time_ns, f"{path} was made again"


def test_a_finished_file_that_was_altered_meanwhile_is_made_again(
    text: Path, unbroken: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    killed(text, out, "shard_00003")
    (out / "2048_shards_uncompressed" / "part_00000_of_00060.hdf5").write_bytes(b"altered")
    assert prepare(text, out, *MANY) == 0
    assert contents(out) == contents(unbroken)


def test_a_finished_data_set_is_found_and_not_made_again(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert prepare(text, out, "--vocab-size", "150") == 0
    monkeypatch.setattr(Workers, "started", None)  # nothing may be made
    assert prepare(text, out, "--vocab-size", "150") == 0


def test_a_finished_data_set_that_was_damaged_is_made_again(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert prepare(text, out, "--vocab-size", "150") == 0
    whole = contents(out)
    training_files(out)[1].unlink()
    (out / "vocab.txt").write_text("altered")
    assert prepare(text, out, "--vocab-size", "150") == 0
    assert contents(out) == whole


def test_other_parameters_or_other_text_are_not_mixed_in(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert prepare(text, out, "--vocab-size", "150") == 0
    whole = contents(out)
    assert prepare(text, out, "--vocab-size", "150", "--seed", "7") == 1
    assert "seed is 12345 there, 7 asked" in capsys.readouterr().err
    other = write_text(tmp_path / "text.txt", range(10, 90))
    assert prepare(other, out, "--vocab-size", "150") == 1
    assert "text is ['text.txt sha256:" in capsys.readouterr().err
    assert contents(out) == whole


def test_a_stray_shard_is_named_and_not_trained_on(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert prepare(text, out, "--vocab-size", "150") == 0
    (out / "2048_shards_uncompressed" / "part_00007_of_00009.hdf5").touch()
    assert prepare(text, out, "--vocab-size", "150") == 1
    assert "part_00007_of_00009.hdf5 = 0 bytes: unexpected" in capsys.readouterr().err


def test_unfinished_work_of_other_parameters_is_discarded_on_request_only(
    text: Path, unbroken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    killed(text, out, "part_f00000_p0001")
    assert prepare(text, out, *MANY, "--dup", "3") == 1
    assert "dup is 2 there, 3 asked" in capsys.readouterr().err
    assert prepare(text, out, *MANY, "--dup", "3", "--restart") == 0
    assert manifest.read(out).parameters["dup"] == 3
    assert contents(out) != contents(unbroken)
