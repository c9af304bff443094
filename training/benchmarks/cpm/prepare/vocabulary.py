"""CPM-1's tokens: jieba's words, then SentencePiece.

A document's line is cut into words (jieba, precise mode, with its model for unknown words). Then a blank becomes
▂ and the newline ▃, the words are put together again with a blank between each two, and SentencePiece encodes
that. This is CPM-1's own way, token for token (TsinghuaAI/CPM-1-Generate, data_utils/tokenization_gpt2.py).
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jieba
import sentencepiece

from utils.errors import FlagPerfError

END_OF_DOCUMENT = "<eod>"
CONTROL = (
    "<cls>",
    "<sep>",
    "<pad>",
    "<mask>",
    END_OF_DOCUMENT,
)  # numbers 3 to 7, after <unk>, <s>, </s>: as CPM-1's
BLANKS = str.maketrans(" \n", "▂▃")
COVERAGE = (
    0.9995  # of the characters of the training text; rarer ones become <unk>. SentencePiece's usual value
)
_REMEDY = "give CPM-1's chinese_vocab.model, another SentencePiece model with a piece <eod>, or --vocab-size"

jieba.setLogLevel(logging.WARNING)  # its dictionary is loaded without a word


def segmented(document: str) -> str:
    """The words of a document's line, each blank and newline replaced, with a blank between each two."""
    return " ".join(word.translate(BLANKS) for word in _tokenizer().cut(document))


@lru_cache(maxsize=1)
def _tokenizer() -> jieba.Tokenizer:
    """With its own dictionary: by itself it takes what anybody has left of one as /tmp/jieba.cache."""
    tokenizer = jieba.Tokenizer()
    with TemporaryDirectory() as folder:
        tokenizer.tmp_dir = folder
        tokenizer.initialize()
    return tokenizer


@dataclass(frozen=True)
class Vocabulary:
    """A SentencePiece model that has the piece <eod>."""

    serialized: bytes

    @property
    def size(self) -> int:
        """Number of pieces."""
        return int(self._processor.get_piece_size())

    @property
    def end_of_document(self) -> int:
        return int(self._processor.piece_to_id(END_OF_DOCUMENT))

    @property
    def unknown(self) -> int:
        return int(self._processor.unk_id())

    def piece(self, number: int) -> str:
        return str(self._processor.id_to_piece(number))

    def encode(self, document: str) -> list[int]:
        """The tokens of a document's line, newline included, and <eod>."""
        tokens: list[int] = self._processor.encode(segmented(document))
        return [*tokens, self.end_of_document]

    @property
    def _processor(self) -> Any:
        return _loaded(self.serialized)


@lru_cache(maxsize=2)
def _loaded(serialized: bytes) -> Any:
    return sentencepiece.SentencePieceProcessor(model_proto=serialized)


def read(path: Path) -> Vocabulary:
    """The vocabulary of a SentencePiece model file; FlagPerfError if it is none or lacks <eod>."""
    try:
        vocabulary = Vocabulary(path.read_bytes())
        size, end = vocabulary.size, vocabulary.end_of_document
    except (OSError, RuntimeError) as error:
        raise _unusable(path, str(error)) from None
    if size == 0 or vocabulary.piece(end) != END_OF_DOCUMENT:
        raise _unusable(path, f"none of its {size} pieces is {END_OF_DOCUMENT}")
    return vocabulary


def train(documents: Iterable[str], size: int) -> Vocabulary:
    """A vocabulary of `size` pieces made by byte pair encoding: the same for the same documents."""
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_words(documents),
            model_writer=model,
            vocab_size=size,
            model_type="bpe",
            character_coverage=COVERAGE,
            control_symbols=list(CONTROL),
            max_sentence_length=1 << 24,  # bytes: no document is left out for its length
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        why = str(error).rpartition("] ")[2]
        raise FlagPerfError(
            f"no vocabulary of {size} pieces can be made of this text: {why}",
            where="--vocab-size",
            remedy="give a size that the text can fill and that holds its characters",
        ) from None
    return Vocabulary(model.getvalue())


def _words(documents: Iterable[str]) -> Iterator[str]:
    for document in documents:
        yield segmented(document)


def _unusable(path: Path, why: str) -> FlagPerfError:
    return FlagPerfError(f"no vocabulary of CPM: {why}", where=str(path), remedy=_REMEDY)
