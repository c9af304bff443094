"""Bad input names file and line (exit 1), wrong arguments the option (exit 2); nothing half-written stays."""

from __future__ import annotations

import io
import lzma
import shutil
from pathlib import Path

import pytest
import sentencepiece

from benchmarks.cpm.prepare.cli import main
from tests.benchmarks.cpm.prepare_data import contents, document, prepare, small_vocabulary, write_text

GOOD = "".join(f"{document(number)}\n" for number in range(50)).encode()


@pytest.mark.parametrize(("role", "workers"), [("train", 1), ("train", 2), ("valid", 1)])
@pytest.mark.parametrize(
    ("name", "content", "place", "why"),
    [
        ("bad.txt", GOOD + "天地\n".encode("gb18030"), ", line 51", "not UTF-8"),
        ("bad.txt", "天地\n".encode("utf-16"), ", line 1", "not UTF-8"),
        ("bad.txt", b"\0\n", ", line 1", "NUL byte: this is UTF-16"),
        ("bad.txt", b"", "", "holds no document"),
        ("bad.txt", b"\n \n\n", "", "holds no document"),
        ("bad.txt.xz", lzma.compress(GOOD)[:-20], "", "cannot be read after line"),
    ],
)
def test_malformed_text_names_file_and_line_and_leaves_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    role: str,
    workers: int,
    name: str,
    content: bytes,
    place: str,
    why: str,
) -> None:
    good, bad = tmp_path / "good", tmp_path / name
    good.write_bytes(GOOD)
    bad.write_bytes(content)
    given = ([good, bad], ()) if role == "train" else ([good], ("--valid", str(bad)))
    assert prepare(given[0], tmp_path / "out", *given[1], workers=workers) == 1
    told = capsys.readouterr().err
    assert f"{bad}{place}: " in told
    assert why in told
    assert not (tmp_path / "out").exists()


def vocabulary_without_end() -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["天 地", "玄 黄"]),
        model_writer=model,
        vocab_size=10,
        model_type="bpe",
        minloglevel=2,
    )
    return model.getvalue()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file"),
        (b"", "no vocabulary of CPM"),
        (b"no model", "no vocabulary of CPM"),
        (vocabulary_without_end(), "is <eod>"),
        (small_vocabulary().serialized[:-300], "no vocabulary of CPM"),
    ],
    ids=["absent", "empty", "text", "without-end", "cut-short"],
)
def test_a_file_that_is_no_vocabulary_is_named_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, why: str
) -> None:
    text, vocab = write_text(tmp_path / "train.txt", range(50)), tmp_path / "v.model"
    if content is not None:
        vocab.write_bytes(content)
    assert prepare(text, tmp_path / "out", "--vocab", str(vocab)) == 1
    told = capsys.readouterr().err
    assert str(vocab) in told
    assert why in told
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--valid", "absent"), "absent: cannot be read"),
        (("--vocab-size", "5000"), "no vocabulary of 5000 pieces"),
        (("--eval-every", "1000"), "no document is held out"),
    ],
)
def test_what_cannot_be_made_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], why: str
) -> None:
    (tmp_path / "text").write_bytes(GOOD)
    assert prepare(tmp_path / "text", tmp_path / "out", *arguments) == 1
    assert why in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_files_of_the_user_beside_the_data_set_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A vocabulary of the user's where that of the data set belongs, notes, and CPM-1's checkpoint."""
    text, bad, out = write_text(tmp_path / "text", range(60)), tmp_path / "bad", tmp_path / "out"
    bad.write_bytes(GOOD + b"\xff\n")
    (out / "train").mkdir(parents=True)
    (out / "cpm_model_states_medium.pt").write_bytes(b"weights")
    (out / "train" / "notes.txt").write_text("mine")
    others = contents(out)
    (out / "chinese_vocab.model").write_bytes(small_vocabulary().serialized)
    before, vocab = contents(out), ("--vocab", str(out / "chinese_vocab.model"))
    assert prepare(bad, out, *vocab) == prepare(text, out, *vocab) == 1
    assert "chinese_vocab.model: is an input, and would be overwritten" in capsys.readouterr().err
    assert prepare(bad, out) == prepare(text, out, "--restart") == 1
    assert "chinese_vocab.model: is there, was not made by this preparation" in capsys.readouterr().err
    assert contents(out) == before
    (out / "chinese_vocab.model").unlink()
    assert prepare([text, bad], out) == prepare(text, out, "--eval-every", "1000") == 1
    assert contents(out) == others
    (out / "train" / "notes.txt").unlink()
    assert prepare(text, out) == 0
    assert contents(out)["cpm_model_states_medium.pt"] == b"weights"


def test_a_missing_text_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare(tmp_path / "absent", tmp_path / "out") == 1
    assert f"{tmp_path / 'absent'}: cannot be read: No such file" in capsys.readouterr().err


def test_more_parts_than_documents_is_no_harm(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text", range(40))
    assert prepare(text, tmp_path / "out", "--parts-per-file", "50") == 0
    assert len(list((tmp_path / "out" / "train").iterdir())) == 50


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--demo"], "--out DIR is needed"),
        (["--train", "x"], "--out DIR is needed"),
        (["--demo", "--train", "x", "--out", "y"], "not allowed with"),
        (["--demo", "--out", "y", "--valid", "x"], "leave --valid away"),
        (["--out", "y"], "one of the arguments"),
        (["--demo", "--out", "y", "--workers", "0"], "not a positive number"),
        (["--demo", "--out", "y", "--seq-length", "0"], "--seq-length = 0: out of range"),
        (["--demo", "--out", "y", "--vocab-size", "many"], "invalid int value"),
    ],
)
def test_wrong_arguments_exit_2(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert why in capsys.readouterr().err


@pytest.fixture
def made(tmp_path: Path) -> Path:
    assert prepare(write_text(tmp_path / "text", range(60)), tmp_path / "out", "--parts-per-file", "3") == 0
    return tmp_path / "out"


def test_verify_passes_an_intact_set_and_names_every_damaged_file(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--verify", str(made)]) == 0
    assert "5 files" in capsys.readouterr().out
    first, second, third = sorted((made / "train").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    third.write_bytes(third.read_bytes()[:-1] + b"\x55")
    shutil.copy(third, made / "train" / "chunks_00009_of_00010.npy")
    assert main(["--verify", str(made), "--workers", "2"]) == 1
    told = capsys.readouterr()
    assert f"{first.name}: missing" in told.err
    assert f"{second.name} = " in told.err and "short" in told.err
    assert f"{third.name}: altered" in told.err
    assert "chunks_00009_of_00010.npy = " in told.err and "unexpected" in told.err
    assert "4 problems" in told.out


def test_verify_of_a_directory_without_manifest_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--verify", str(tmp_path)]) == 1
    assert "there is no manifest" in capsys.readouterr().err


def test_a_checkpoint_beside_the_data_is_no_problem(made: Path) -> None:
    (made / "cpm_model_states_medium.pt").write_bytes(b"weights")
    assert main(["--verify", str(made)]) == 0
    assert "cpm_model_states_medium.pt" in contents(made)
