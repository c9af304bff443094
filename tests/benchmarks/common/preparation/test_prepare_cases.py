"""What holds for the preparation of every case: whole or not at all, resumed, and nothing of the user's lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import benchmarks
from benchmarks.common.preparation.workers import Workers
from tests.benchmarks.common.preparation.prepared_cases import CASES, PreparedCase, contents
from utils import manifest

TRAINING = Path(benchmarks.__file__).parents[1]
DOCUMENTS = 60


@dataclass(frozen=True)
class Made:
    """Good input, and the data set made of it without a break."""

    case: PreparedCase
    given: Path
    out: Path

    def training_files(self, out: Path) -> list[Path]:
        return sorted((out / self.case.training).glob("*"))


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    case: PreparedCase = request.param
    folder = tmp_path_factory.mktemp(case.name)
    made = Made(case, case.write_input(folder / "input", DOCUMENTS), folder / "out")
    assert case.prepare(made.given, made.out) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["input", "out"], "nothing else is left"
    return made


@pytest.fixture
def copy(made: Made, tmp_path: Path) -> Path:
    """A copy of the data set, to be damaged."""
    for name, content in contents(made.out).items():
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_bytes(content)
    return tmp_path / "out"


STOPPED = """
import os, signal, sys
from benchmarks.common.preparation.partial import PartialDataset
from benchmarks.{case}.prepare.command import main

original = PartialDataset.step

def step(self, name, outputs, make):
    def make_and_stop(paths):
        facts = make(paths)
        if (name, "{when}") == ("{step}", "within"):
            os.kill(os.getpid(), signal.{how})
        return facts

    done = original(self, name, outputs, make_and_stop)
    if (name, "{when}") == ("{step}", "after"):
        os.kill(os.getpid(), signal.{how})
    return done

PartialDataset.step = step
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may have it ignored
sys.exit(main())
"""


def stop(
    made: Made, out: Path, step: str, when: str, how: signal.Signals = signal.SIGKILL
) -> subprocess.CompletedProcess[str]:
    """Run the command and stop it: `within` a step, when its files are written but not recorded, or `after` it."""
    script = out.with_name("stopped.py")
    script.write_text(STOPPED.format(case=made.case.name, step=step, when=when, how=how.name))
    command = [sys.executable, str(script), *made.case.command(made.given, out)]
    environment = {**os.environ, "PYTHONPATH": str(TRAINING)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def partial_folders(out: Path) -> list[Path]:
    return sorted(out.parent.glob(f"{out.name}.partial-*"))


def test_a_killed_preparation_goes_on_and_makes_the_same_files(made: Made, tmp_path: Path) -> None:
    for number, (step, finished) in enumerate(made.case.kills.items()):
        for when in ("within", "after"):
            out = tmp_path / f"{number}{when}" / "out"
            out.parent.mkdir()
            assert stop(made, out, step, when).returncode == -signal.SIGKILL
            assert not out.exists(), "nothing half-made has the name of the data set"
            (partial,) = partial_folders(out)
            files = made.training_files(partial / "data")
            kept = files[: finished - (when == "within" and finished > 0 and "val" not in step)]
            times = [path.stat().st_mtime_ns for path in kept]
            assert made.case.prepare(made.given, out, workers=2 if number == 1 else 1) == 0
            assert contents(out) == contents(made.out)
            again = [(out / path.relative_to(partial / "data")).stat().st_mtime_ns for path in kept]
            assert again == times, "a finished step was made again"
            assert partial_folders(out) == []


def test_ctrl_c_says_where_what_is_made_stays(made: Made, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = stop(made, out, "vocabulary", "after", signal.SIGINT)
    (partial,) = partial_folders(out)
    assert done.returncode == 130
    assert f"what is made so far stays in {partial}" in done.stderr
    assert "the same command goes on" in done.stderr
    assert made.case.prepare(made.given, out) == 0
    assert contents(out) == contents(made.out)


def test_the_number_of_workers_changes_nothing(made: Made, tmp_path: Path) -> None:
    assert made.case.prepare(made.given, tmp_path / "out", workers=2) == 0
    assert contents(tmp_path / "out") == contents(made.out)


def test_unfinished_work_of_other_parameters_is_named_and_left_alone(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, (other, _) = tmp_path / "out", made.case.other
    stop(made, out, "vocabulary", "after")
    (partial,) = partial_folders(out)
    before = contents(partial)
    assert made.case.prepare(made.given, out, *other) == 0
    assert f"{partial}: left by other parameters or text" in capsys.readouterr().err
    assert contents(partial) == before
    assert contents(out) != contents(made.out)


def test_a_finished_data_set_is_found_and_not_made_again(
    made: Made, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Workers, "started", None)  # nothing may be made
    assert made.case.prepare(made.given, made.out) == 0
    printed = capsys.readouterr()
    assert "already made and intact" in printed.err
    assert manifest.read(made.out).digest in printed.out


def damage(made: Made, out: Path) -> Sequence[str]:
    """Delete, shorten, alter and add a file, and how each is named."""
    first, second, third, *_ = made.training_files(out)
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    third.write_bytes(third.read_bytes()[:-1] + bytes([third.read_bytes()[-1] ^ 1]))
    stray = first.with_name(f"stray{first.suffix}")
    stray.touch()
    named = (
        f"{first.name}: missing",
        f"{second.name} = ",
        f"{third.name}: altered",
        f"{stray.name} = 0 bytes: unexpected",
    )
    return ["shorter than the", *(f"{made.case.training}/{each}" for each in named)]


def test_verify_names_every_damaged_file(made: Made, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = len(manifest.read(copy).files)
    (copy / "checkpoint.safetensors").write_bytes(b"beside the data anything may stand")
    assert made.case.preparation.main(["--verify", str(copy)]) == 0
    assert f"{count} files" in capsys.readouterr().out
    named = damage(made, copy)
    assert made.case.preparation.main(["--verify", str(copy), "--workers", "2"]) == 1
    printed = capsys.readouterr()
    assert [each for each in named if each not in printed.err] == []
    assert "4 problems" in printed.out


def test_a_damaged_data_set_is_refused_by_file_name_and_left_as_it_is(
    made: Made, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = damage(made, copy)
    before = contents(copy)
    assert made.case.prepare(made.given, copy) == 1
    text = capsys.readouterr().err
    assert [each for each in named if each not in text] == []
    assert "move the folder away" in text
    assert contents(copy) == before
    assert partial_folders(copy) == []


def test_other_parameters_or_other_input_are_not_mixed_in(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, (other, difference) = contents(made.out), made.case.other
    assert made.case.prepare(made.given, made.out, *other) == 1
    assert difference in capsys.readouterr().err
    more = made.case.write_input(tmp_path / "input", DOCUMENTS + 30)
    assert made.case.prepare(more, made.out) == 1
    assert f"{made.case.preparation.source} is ['" in capsys.readouterr().err
    assert contents(made.out) == before
    assert partial_folders(made.out) == []


def test_files_of_the_user_at_the_target_are_left_alone(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A checkpoint, and a vocabulary where that of the data set would stand."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "checkpoint.pt").write_bytes(b"weights")
    (out / made.case.vocabulary).write_bytes((made.out / made.case.vocabulary).read_bytes())
    before = contents(out)
    for more in ((), ("--vocab", str(out / made.case.vocabulary))):
        assert made.case.prepare(made.given, out, *more) == 1
        assert f"{out}: is there already, and holds other files" in capsys.readouterr().err
    assert contents(out) == before
    (tmp_path / "file").write_text("mine")
    assert made.case.prepare(made.given, tmp_path / "file") == 1
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "out"]


def test_an_empty_folder_is_taken_through_a_link_too(made: Made, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    assert made.case.prepare(made.given, tmp_path / "out") == 0
    assert (tmp_path / "out").is_symlink()
    assert contents(tmp_path / "real") == contents(made.out)


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_input_is_named_and_leaves_nothing(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: int
) -> None:
    given = made.case.write_input(tmp_path / "input", DOCUMENTS)
    named = made.case.spoil(given)
    assert made.case.prepare(given, tmp_path / "out", workers=workers) == 1
    assert named in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["input"]


def test_input_and_vocabulary_that_are_missing_are_named_and_leave_nothing(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made.case.prepare(tmp_path / "absent", tmp_path / "out") == 1
    assert f"{tmp_path / 'absent'}: cannot be read: No such file" in capsys.readouterr().err
    assert made.case.prepare(made.given, tmp_path / "out", "--vocab", str(tmp_path / "no_vocab")) == 1
    assert f"{tmp_path / 'no_vocab'}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert made.case.prepare(made.given, tmp_path / "file" / "out") == 1
    assert "cannot be written" in capsys.readouterr().err


def test_verify_without_a_manifest_fails(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made.case.preparation.main(["--verify", str(tmp_path)]) == 1
    assert "there is no manifest" in capsys.readouterr().err


def test_wrong_arguments_exit_2(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    source = f"--{made.case.preparation.source}"
    for arguments, why in (
        (["--demo"], "--out DIR is needed"),
        ([source, "x"], "--out DIR is needed"),
        (["--demo", source, "x", "--out", "y"], "not allowed with"),
        (["--out", "y"], "one of the arguments"),
        (["--demo", "--out", "y", "--workers", "0"], "not a positive number"),
        (["--demo", "--out", "y", "--seq-length", "0"], "--seq-length = 0: out of range"),
        (["--demo", "--out", "y", "--vocab-size", "many"], "invalid int value"),
    ):
        with pytest.raises(SystemExit) as ended:
            made.case.preparation.main(arguments)
        assert ended.value.code == 2
        assert why in capsys.readouterr().err
