"""A preparation that is killed goes on; one that is finished is not made again; others are not mixed in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.cpm.prepare_data import SMALL, contents, prepare, write_text
from utils import manifest
from utils.preparation.workers import Workers

TRAINING = Path(__file__).parents[3] / "training"
MANY = ("--parts-per-file", "6")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "train.txt", range(120))


@pytest.fixture(scope="module")
def unbroken(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("unbroken") / "out"
    assert prepare(text, out, *MANY) == 0
    return out


SUICIDE = """
import os, signal, sys
from benchmarks.cpm.prepare.cli import main
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


def killed(text: Path, out: Path, *, after: str = "", within: str = "") -> None:
    """Run the command; kill -9 it when step `after` is recorded, or `within` is written but not yet renamed."""
    script = out.with_name("suicide.py")
    script.write_text(SUICIDE)
    names = {"PYTHONPATH": str(TRAINING), "KILL_AFTER": after, "KILL_WITHIN": within}
    done = subprocess.run(
        [sys.executable, script, "--train", text, "--out", out, "--workers", "1", *SMALL, *MANY],
        env={**os.environ, **names},
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    "how",
    [
        {"after": "split_00000"},
        {"within": "vocabulary"},
        {"within": "chunks_train_00003"},
        {"after": "chunks_train_00003"},
    ],
    ids=str,
)
def test_a_killed_preparation_goes_on_and_makes_the_same_files(
    text: Path, unbroken: Path, tmp_path: Path, how: dict[str, str]
) -> None:
    out, whole = tmp_path / "out", contents(unbroken)
    killed(text, out, **how)
    assert not (out / "manifest.json").exists()
    for path in [*out.glob("*.model"), *out.glob("train/*")]:
        assert path.read_bytes() == whole[path.relative_to(out).as_posix()], "half-written"
    finished = sorted(out.glob("train/*"))
    times = [path.stat().st_mtime_ns for path in finished]
    assert len(finished) == {"chunks_train_00003": 3 if "within" in how else 4}.get(
        next(iter(how.values())), 0
    )
    assert prepare(text, out, *MANY, workers=2) == 0
    assert contents(out) == whole
    assert [path.stat().st_mtime_ns for path in finished] == times, "a finished file was made again"


def test_a_finished_data_set_is_found_and_not_made_again(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert prepare(text, out) == 0
    monkeypatch.setattr(Workers, "started", None)  # nothing may be made
    assert prepare(text, out) == 0
    assert "already made and intact" in capsys.readouterr().err


def test_a_finished_data_set_that_was_damaged_is_made_again(
    text: Path, unbroken: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert prepare(text, out, *MANY) == 0
    (out / "train" / "chunks_00001_of_00006.npy").unlink()
    (out / "chinese_vocab.model").write_text("altered")
    assert prepare(text, out, *MANY) == 0
    assert contents(out) == contents(unbroken)


def test_other_parameters_or_other_text_are_not_mixed_in(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert prepare(text, out) == 0
    whole = contents(out)
    assert prepare(text, out, "--seq-length", "12") == 1
    assert "seq_length is 10 there, 12 asked" in capsys.readouterr().err
    other = write_text(tmp_path / "train.txt", range(10, 90))
    assert prepare(other, out) == 1
    assert "train is ['train.txt sha256:" in capsys.readouterr().err
    assert contents(out) == whole


def test_unfinished_work_of_other_parameters_is_discarded_on_request_only(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    killed(text, out, after="chunks_train_00003")
    assert prepare(text, out, *MANY, "--seq-length", "12") == 1
    assert "seq_length is 10 there, 12 asked" in capsys.readouterr().err
    assert prepare(text, out, *MANY, "--seq-length", "12", "--restart") == 0
    assert manifest.read(out).parameters["seq_length"] == 12
