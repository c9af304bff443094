"""Bad input names file and line (exit 1), wrong arguments the option (exit 2); nothing half-written stays."""

from __future__ import annotations

import io
import lzma
from pathlib import Path

import pytest
import sentencepiece

from benchmarks.cpm.prepare.command import main
from tests.benchmarks.cpm.prepare_data import (
    document,
    prepare,
    small_vocabulary,
    write_text,
)

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
    printed = capsys.readouterr().err
    assert f"{bad}{place}: " in printed
    assert why in printed
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
    printed = capsys.readouterr().err
    assert str(vocab) in printed
    assert why in printed
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


def test_more_parts_than_documents_is_no_harm(tmp_path: Path) -> None:
    text = write_text(tmp_path / "text", range(40))
    assert prepare(text, tmp_path / "out", "--parts-per-file", "50") == 0
    assert len(list((tmp_path / "out" / "train").iterdir())) == 50


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--demo", "--out", "y", "--valid", "x"], "leave --valid away"),
        (["--demo", "--out", "y", "--eval-every", "1"], "--eval-every = 1: out of range"),
    ],
)
def test_wrong_arguments_exit_2(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert why in capsys.readouterr().err
