"""A preparation that is killed goes on; one that is finished is not made again; others are not mixed in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.glm.prepare_data import SMALL, contents, prepare, write_record
from utils import manifest
from utils.preparation.workers import Workers

TRAINING = Path(__file__).parents[3] / "training"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_record(tmp_path_factory.mktemp("record") / "ReCoRD")


@pytest.fixture(scope="module")
def unbroken(record: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unbroken") / "out"
    assert prepare(record, out) == 0
    return out


SUICIDE = """
import os, signal, sys
from benchmarks.glm.prepare.cli import main
from utils.preparation.workshop import Workshop

original = Workshop.step

def step(self, name, outputs, make):
    def make_and_die(paths):
        facts = make(paths)
        if name == os.environ["KILL_WITHIN"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return facts

    done = original(self, name, outputs, make_and_die)
    if name == os.environ["KILL_AFTER"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

Workshop.step = step
sys.exit(main())
"""


def killed(record: Path, out: Path, *, after: str = "", within: str = "") -> None:
    """Run the command; kill -9 it when step `after` is recorded, or `within` is written but not yet renamed."""
    script = out.with_name("suicide.py")
    script.write_text(SUICIDE)
    names = {"PYTHONPATH": str(TRAINING), "KILL_AFTER": after, "KILL_WITHIN": within}
    done = subprocess.run(
        [sys.executable, script, "--record", record, "--out", out, "--workers", "1", *SMALL],
        env={**os.environ, **names},
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("how", "finished"),
    [
        ({"within": "vocabulary"}, 0),
        ({"within": "questions_train_00002"}, 2),
        ({"after": "questions_train_00002"}, 3),
        ({"within": "questions_val_00000"}, 4),
    ],
    ids=str,
)
def test_a_killed_preparation_goes_on_and_makes_the_same_files(
    record: Path, unbroken: Path, tmp_path: Path, how: dict[str, str], finished: int
) -> None:
    out, whole = tmp_path / "out", contents(unbroken)
    killed(record, out, **how)
    assert not (out / "manifest.json").exists()
    files = sorted(out.glob("train/*"))
    assert len(files) == finished
    for path in [*out.glob("vocab.txt"), *files]:
        assert path.read_bytes() == whole[path.relative_to(out).as_posix()], "half-written"
    times = [path.stat().st_mtime_ns for path in files]
    assert prepare(record, out, workers=2) == 0
    assert contents(out) == whole
    assert [path.stat().st_mtime_ns for path in files] == times, "a finished file was made again"


def test_a_finished_data_set_is_found_and_not_made_again(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert prepare(record, out) == 0
    monkeypatch.setattr(Workers, "started", None)  # nothing may be made
    assert prepare(record, out) == 0
    assert "already made and intact" in capsys.readouterr().err


def test_a_finished_data_set_that_was_damaged_is_made_again(
    record: Path, unbroken: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert prepare(record, out) == 0
    (out / "train" / "part_00001_of_00004.hdf5").unlink()
    (out / "vocab.txt").write_text("altered")
    assert prepare(record, out) == 0
    assert contents(out) == contents(unbroken)


def test_other_parameters_or_another_record_are_not_mixed_in(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert prepare(record, out) == 0
    whole = contents(out)
    assert prepare(record, out, "--seq-length", "60") == 1
    assert "seq_length is 64 there, 60 asked" in capsys.readouterr().err
    other = write_record(tmp_path / "other", train=range(5, 20))
    assert prepare(other, out) == 1
    assert "record is ['train.jsonl sha256:" in capsys.readouterr().err
    assert contents(out) == whole


def test_unfinished_work_of_other_parameters_is_discarded_on_request_only(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    killed(record, out, after="questions_train_00002")
    assert prepare(record, out, "--seq-length", "60") == 1
    assert "seq_length is 64 there, 60 asked" in capsys.readouterr().err
    assert prepare(record, out, "--seq-length", "60", "--restart") == 0
    assert manifest.read(out).parameters["seq_length"] == 60
