"""The WordPiece vocabulary: training is deterministic, reading names the wrong line, encoding is BERT's."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bert.prepare.command import DEMO_TEXT
from benchmarks.common import wordpiece as vocabulary
from benchmarks.common.preparation import text
from benchmarks.common.wordpiece import SPECIAL_TOKENS, Vocabulary
from utils.errors import FlagPerfError


@pytest.fixture(scope="module")
def verses() -> list[str]:
    return [sentence for sentence in text.sentences(DEMO_TEXT) if sentence][:3000]


def test_training_again_gives_the_same_vocabulary(verses: list[str]) -> None:
    trained = [vocabulary.train(verses, 500) for _ in range(3)]
    assert trained[0] == trained[1] == trained[2]


def test_a_trained_vocabulary_begins_with_the_special_tokens_and_has_the_size(verses: list[str]) -> None:
    trained = vocabulary.train(verses, 500)
    assert trained.tokens[:5] == SPECIAL_TOKENS
    assert trained.size == len(set(trained.tokens)) == 500
    assert {"the", "##ing", "a", "##a", ","} <= set(trained.tokens)
    assert all(token == token.lower() for token in trained.tokens[5:])


def test_rare_characters_are_left_out_of_the_alphabet() -> None:
    common = [chr(0x4E00 + i) for i in range(vocabulary.ALPHABET_LIMIT)]
    trained = vocabulary.train(["".join(common)] * 2 + ["\u3042"], 4000)
    assert set(common) <= set(trained.tokens)
    assert "\u3042" not in trained.tokens


def test_a_vocabulary_too_small_for_the_characters_is_refused() -> None:
    with pytest.raises(FlagPerfError, match="cannot hold the text's 26 characters"):
        vocabulary.train(["abcdefghijklmnopqrstuvwxyz"], 50)


def test_a_vocabulary_read_back_is_the_one_written(tmp_path: Path, verses: list[str]) -> None:
    trained = vocabulary.train(verses, 500)
    (tmp_path / "vocab.txt").write_text(vocabulary.as_text(trained), encoding="utf-8")
    assert vocabulary.read(tmp_path / "vocab.txt") == trained


GOOD = "".join(f"{token}\n" for token in SPECIAL_TOKENS).encode()


@pytest.mark.parametrize(
    ("content", "place", "why"),
    [
        (GOOD + b"word\n\nother\n", ", line 7", "an empty line"),
        (GOOD + b"word\nthe\nword\n", ", line 8", "'word' stands in line 6 too"),
        (GOOD + b"caf\xe9\n", ", line 6", "not UTF-8"),
        (b"[PAD]\n[UNK]\n[CLS]\nword\n", "", r"lacks \[SEP\], \[MASK\]"),
        (b"", ", line 1", "an empty line"),
    ],
)
def test_an_unreadable_vocabulary_names_file_and_line(
    tmp_path: Path, content: bytes, place: str, why: str
) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes(content)
    with pytest.raises(FlagPerfError, match=why) as error:
        vocabulary.read(path)
    assert error.value.where == f"{path}{place}"


def test_a_missing_vocabulary_is_named(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match="No such file"):
        vocabulary.read(tmp_path / "absent")


KNOWN = Vocabulary(
    (*SPECIAL_TOKENS, "un", "##aff", "##able", "cafe", ",", "[", "]", "中", "\u03c3", "##\u03c2", "mask")
)


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("Unaffable, UNAFF", ["un", "##aff", "##able", ",", "un", "##aff"]),
        ("Café", ["cafe"]),
        ("unable unknown", ["un", "##able", "[UNK]"]),
        ("un中un", ["un", "中", "un"]),
        ("[MASK]", ["[", "mask", "]"]),  # text that looks like a special token is only text
        ("\u03a3\u03a3 \u03a3", ["\u03c3", "##\u03c2", "\u03c3"]),  # Greek: final sigma ends a word
        ("un" + "aff" * 66, ["un", *["##aff"] * 66]),  # 200 characters
        ("un" + "aff" * 67, ["[UNK]"]),
        ("\u200b", []),
    ],
)
def test_encoding_is_that_of_uncased_bert(sentence: str, tokens: list[str]) -> None:
    (ids,) = KNOWN.encode([sentence])
    assert [KNOWN.tokens[i] for i in ids] == tokens


def test_many_sentences_are_encoded_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "SENTENCES_AT_ONCE", 3)
    encoded = [list(ids) for ids in KNOWN.encode(["cafe"] * 4 + ["", "mask"])]
    assert encoded == [[8]] * 4 + [[], [15]]
