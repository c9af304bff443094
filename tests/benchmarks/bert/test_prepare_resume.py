"""A preparation that is killed goes on; one that is finished is not made again; others are not mixed in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.bert.prepare_data import SMALL, contents, prepare, training_files, write_text
from utils import manifest
from utils.preparation.workers import Workers

TRAINING = Path(__file__).parents[3] / "training"
MANY = ("--vocab-size", "150", "--parts-per-file", "6", "--shards", "60")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "text.txt", range(120))


@pytest.fixture(scope="module")
def unbroken(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unbroken") / "out"
    assert prepare(text, out, *MANY) == 0
    return out


SUICIDE = """
import os, signal, sys, time
from benchmarks.bert.prepare.cli import main
from utils.preparation.workshop import Workshop

os.environ.setdefault("MAIN_PROCESS", str(os.getpid()))  # workers import this file too
original = Workshop.step

def step(self, name, outputs, make):
    def make_and_die(paths):
        facts = make(paths)
        if name == os.environ["KILL_WITHIN"]:
            die()
        return facts

    done = original(self, name, outputs, make_and_die)
    if name == os.environ["KILL_AFTER"]:
        die()
    return done

def die():
    os.kill(int(os.environ["MAIN_PROCESS"]), signal.SIGKILL)
    time.sleep(60)

Workshop.step = step
if __name__ == "__main__":
    sys.exit(main())
"""


def killed(text: Path, out: Path, *, after: str = "", within: str = "") -> None:
    """Run the command with two workers; kill -9 it as soon as step `after` is recorded.

    `within`: when the step's files are written, but neither renamed nor recorded.
    """
    script = out.with_name("suicide.py")
    script.write_text(SUICIDE)
    names = {"PYTHONPATH": str(TRAINING), "KILL_AFTER": after, "KILL_WITHIN": within}
    done = subprocess.run(
        [sys.executable, script, "--text", text, "--out", out, "--workers", "2", *SMALL, *MANY],
        env={**os.environ, **names},
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    "how",
    [
        {"after": "split_00000"},
        {"within": "evaluation_set"},
        {"after": "part_f00000_p0001"},
        {"within": "shard_00003"},
        {"after": "shard_00003"},
    ],
    ids=str,
)
def test_a_killed_preparation_goes_on_and_makes_the_same_files(
    text: Path, unbroken: Path, tmp_path: Path, how: dict[str, str]
) -> None:
    out, whole = tmp_path / "out", contents(unbroken)
    killed(text, out, **how)
    assert not (out / "manifest.json").exists()
    for path in [*out.glob("*.txt"), *out.glob("*/*")]:
        if ".prepare" not in path.parts:
            assert path.read_bytes() == whole[path.relative_to(out).as_posix()], "half-written"
    recorded = [record.stem for record in (out / ".prepare" / "done").glob("shard_*.json")]
    shards = [out / "2048_shards_uncompressed" / f"part_{name[6:]}_of_00060.hdf5" for name in recorded]
    finished = [path for path in shards if path.exists()]  # the other worker may be killed before it renames
    times = [path.stat().st_mtime_ns for path in finished]
    assert bool(finished) == ("shard_00003" in how.values())
    assert prepare(text, out, *MANY, workers=2) == 0
    assert contents(out) == whole
    assert [path.stat().st_mtime_ns for path in finished] == times, "a finished file was made again"


def test_a_finished_file_that_was_altered_meanwhile_is_made_again(
    text: Path, unbroken: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    killed(text, out, after="shard_00003")
    (out / "2048_shards_uncompressed" / "part_00000_of_00060.hdf5").write_bytes(b"altered")
    assert prepare(text, out, *MANY) == 0
    assert contents(out) == contents(unbroken)


def test_a_finished_data_set_is_found_and_not_made_again(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert prepare(text, out, "--vocab-size", "150") == 0
    monkeypatch.setattr(Workers, "started", None)  # nothing may be made
    assert prepare(text, out, "--vocab-size", "150") == 0
    assert "already made and intact" in capsys.readouterr().err


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
    killed(text, out, after="part_f00000_p0001")
    assert prepare(text, out, *MANY, "--dup", "3") == 1
    assert "dup is 2 there, 3 asked" in capsys.readouterr().err
    assert prepare(text, out, *MANY, "--dup", "3", "--restart") == 0
    assert manifest.read(out).parameters["dup"] == 3
    assert contents(out) != contents(unbroken)
