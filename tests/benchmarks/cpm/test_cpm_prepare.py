"""From text to the data set: tokens, chunks, determinism, held-out evaluation, the manifest, the demo."""

from __future__ import annotations

import lzma
import marshal
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cpm.prepare import vocabulary
from benchmarks.cpm.prepare.command import DEMO_TEXT, main
from benchmarks.cpm.prepare.steps import cut
from tests.benchmarks.common.preparation.prepared_cases import contents
from tests.benchmarks.cpm.prepare_data import (
    WORDS,
    document,
    load,
    prepare,
    small_vocabulary,
    tokens_of,
    write_text,
)
from utils import manifest

DOCUMENTS = range(60)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "train.txt", DOCUMENTS)


@pytest.fixture(scope="module")
def made(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "out"
    assert prepare(text, out, "--parts-per-file", "3") == 0
    return out


def test_words_are_cut_by_jieba_and_blanks_replaced_as_in_cpm() -> None:
    assert vocabulary.segmented("我来到北京清华大学 学习\n") == "我 来到 北京 清华大学 ▂ 学习 ▃"


def test_a_dictionary_that_another_user_has_left_in_tmp_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "jieba.cache"
    planted.write_bytes(marshal.dumps(({"北": 1, "京": 1}, 2)))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    vocabulary._tokenizer.cache_clear()
    assert vocabulary.segmented("我来到北京") == "我 来到 北京"
    assert [*tmp_path.iterdir()] == [planted]


def test_special_pieces_have_the_numbers_of_cpms_vocabulary_and_are_not_recognised_in_text() -> None:
    pieces = small_vocabulary()
    names = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>"]
    assert [pieces.piece(number) for number in range(8)] == names
    assert (pieces.unknown, pieces.end_of_document, pieces.size) == (0, 7, 100)
    tokens = pieces.encode("<eod>天地\n")
    assert tokens[-1] == 7 and 7 not in tokens[:-1]


def test_documents_are_cut_into_chunks_of_201_tokens() -> None:
    """FlagPerf's rule: chunks follow each other without overlap; a last chunk of one token has no label."""
    documents = [list(range(1, n + 1)) for n in (1, 2, 200, 201, 202, 203, 402, 500)]
    table = cut(documents, 201)
    assert table.dtype == np.int32
    assert [len(tokens) for tokens in tokens_of(table)] == [2, 200, 201, 201, 201, 2, 201, 201, 201, 201, 98]
    assert table[5, :3].tolist() == [202, 203, -1]
    assert table[-1, 0] == 403 and table[-1, 97] == 500
    assert (table[0, 2:] == -1).all()


def test_the_files_hold_the_documents_token_for_token(made: Path, text: Path) -> None:
    pieces = vocabulary.read(made / "chinese_vocab.model")
    lines = text.read_text(encoding="utf-8").splitlines(keepends=True)
    held_out = lines[3::4]
    others = [line for number, line in enumerate(lines) if number % 4 != 3]
    expected = cut([pieces.encode(line) for line in held_out], 11)
    assert (load(made / "valid") == expected).all()
    wanted = cut([pieces.encode(line) for line in others], 11)
    assert sorted(load(made / "train").tolist()) == sorted(wanted.tolist())


def test_the_files_are_named_and_nothing_else_is_left(made: Path) -> None:
    assert sorted(contents(made)) == [
        "chinese_vocab.model",
        "manifest.json",
        "train/chunks_00000_of_00003.npy",
        "train/chunks_00001_of_00003.npy",
        "train/chunks_00002_of_00003.npy",
        "valid/chunks_00000_of_00001.npy",
    ]


def test_given_evaluation_text_and_vocabulary_are_used_and_all_of_the_text_is_trained_on(
    text: Path, made: Path, tmp_path: Path
) -> None:
    valid = write_text(tmp_path / "valid.txt", range(60, 70))
    vocab = made / "chinese_vocab.model"
    out = tmp_path / "out"
    assert prepare(text, out, "--valid", str(valid), "--vocab", str(vocab), "--parts-per-file", "2") == 0
    pieces = vocabulary.read(vocab)
    assert (out / "chinese_vocab.model").read_bytes() == vocab.read_bytes()
    expected = cut([pieces.encode(f"{document(number)}\n") for number in range(60, 70)], 11)
    assert sorted(load(out / "valid").tolist()) == sorted(expected.tolist())
    facts = manifest.read(out).facts
    assert (facts["train_documents"], facts["valid_documents"]) == (60, 10)
    parameters = manifest.read(out).parameters
    assert "eval_every" not in parameters and "vocab_size" not in parameters
    assert parameters["valid"][0].startswith("valid.txt sha256:")


def test_several_texts_are_read_each_with_parts_and_held_out_documents_of_its_own(tmp_path: Path) -> None:
    texts = [write_text(tmp_path / f"{n}.txt", range(n * 20, n * 20 + 20)) for n in range(3)]
    assert prepare(texts, tmp_path / "out", "--parts-per-file", "2") == 0
    assert len(list((tmp_path / "out" / "train").iterdir())) == 6
    assert len(list((tmp_path / "out" / "valid").iterdir())) == 3
    facts = manifest.read(tmp_path / "out").facts
    assert (facts["train_documents"], facts["valid_documents"]) == (45, 15)


def test_the_vocabulary_is_trained_on_the_training_text_only(tmp_path: Path) -> None:
    lines = [f"{'鼎' * 5 if number % 4 == 3 else document(number)}\n" for number in range(40)]
    (tmp_path / "train.txt").write_text("".join(lines), encoding="utf-8")
    assert prepare(tmp_path / "train.txt", tmp_path / "out") == 0
    pieces = vocabulary.read(tmp_path / "out" / "chinese_vocab.model")
    pieces = "".join(pieces.piece(number) for number in range(pieces.size))
    assert "天" in pieces and "鼎" not in pieces
    assert manifest.read(tmp_path / "out").facts["valid_unknown_tokens"] > 0


def test_blank_lines_are_no_documents_and_the_last_line_needs_no_newline(tmp_path: Path) -> None:
    train, valid = write_text(tmp_path / "train.txt", DOCUMENTS), tmp_path / "valid.txt"
    valid.write_bytes("天地玄黄\r\n\n \n　\n宇宙洪荒".encode())
    assert prepare(train, tmp_path / "out", "--valid", str(valid)) == 0
    pieces = vocabulary.read(tmp_path / "out" / "chinese_vocab.model")
    expected = [pieces.encode("天地玄黄\n"), pieces.encode("宇宙洪荒")]
    assert tokens_of(load(tmp_path / "out" / "valid")) == expected


def test_the_manifest_says_what_was_made_and_the_baseline(made: Path, text: Path) -> None:
    listed = manifest.read(made)
    assert listed.dataset == "cpm"
    assert listed.parameters["train"] == [f"train.txt sha256:{manifest.sha256_of(text)}"]
    assert listed.parameters["seq_length"] == 10
    assert str(made) not in (made / "manifest.json").read_text()
    train, valid = load(made / "train"), load(made / "valid")
    facts = listed.facts
    assert (facts["train_samples"], facts["train_tokens"]) == (len(train), int((train >= 0).sum()))
    assert (facts["train_documents"], facts["valid_documents"]) == (45, 15)
    labels = valid[:, 1:][valid[:, 1:] >= 0]
    counts = np.bincount(labels)
    assert facts["valid_labels"] == len(labels)
    assert facts["valid_token_accuracy_of_commonest_token"] == round(counts.max() / len(labels), 4)
    pieces = vocabulary.read(made / "chinese_vocab.model")
    assert facts["valid_commonest_token"] == pieces.piece(int(counts.argmax()))
    assert manifest.verify(made) == []


def test_the_demo_is_small_and_states_its_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--demo", "--out", str(tmp_path / "demo")]) == 0
    listed = manifest.read(tmp_path / "demo")
    facts = listed.facts
    assert listed.total_bytes < 5e6
    assert (facts["train_documents"], facts["valid_documents"], facts["vocab_size"]) == (2218, 246, 8000)
    assert facts["train_unknown_tokens"] < 0.01 * facts["train_tokens"]
    assert 0.07 < facts["valid_token_accuracy_of_commonest_token"] < 0.09
    assert f"token accuracy {facts['valid_token_accuracy_of_commonest_token']}" in capsys.readouterr().out
    assert manifest.verify(tmp_path / "demo") == []


def test_the_demo_corpus_is_the_one_its_note_describes_and_clean() -> None:
    note = DEMO_TEXT.with_name("PROVENANCE.md").read_text(encoding="utf-8")
    assert manifest.sha256_of(DEMO_TEXT) in note
    assert f"{DEMO_TEXT.stat().st_size:,} bytes" in note
    corpus = lzma.decompress(DEMO_TEXT.read_bytes()).decode()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7fA-Za-z0-9%<>&]", corpus), "no terminal codes, no markup"


def test_no_line_of_verse_of_the_demos_evaluation_text_stands_in_its_training_text() -> None:
    lines = lzma.decompress(DEMO_TEXT.read_bytes()).decode().splitlines()
    # the title aside: a tune's name serves many poems
    clauses = [
        set(re.findall(r"[㐀-鿿𠀀-𪛟]{3,}", line.rpartition(" ")[2].rpartition("》")[2])) for line in lines
    ]
    held_out = set().union(*clauses[9::10])
    trained = set().union(*(words for number, words in enumerate(clauses) if number % 10 != 9))
    assert len(held_out) > 1000
    assert not held_out & trained


def test_the_words_of_the_tests_are_words() -> None:
    assert vocabulary.segmented("".join(WORDS[:2])).replace(" ", "") == "天地玄黄"
