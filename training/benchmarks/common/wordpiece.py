"""The WordPiece vocabulary: read, checked, trained; and the uncased BERT tokenizer on it."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from utils.errors import FlagPerfError

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ALPHABET_LIMIT = 1000  # characters; rarer ones become [UNK]. bert-large-uncased keeps 997
LONGEST_WORD = 200  # characters; a longer word is [UNK], as in the reference tokenizer
SENTENCES_AT_ONCE = 10_000


@dataclass(frozen=True)
class Vocabulary:
    """Tokens by id (the line number in vocab.txt, from 0) and the ids of the special ones."""

    tokens: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.tokens)

    def id_of(self, token: str) -> int:
        return self.tokens.index(token)

    def encode(self, sentences: Iterable[str]) -> Iterator[array[int]]:
        """Token ids of each sentence; special tokens are neither added nor recognised in the text."""
        tokenizer = _uncased(Tokenizer(self._model()))
        batch: list[str] = []
        for sentence in sentences:
            batch.append(_lower(sentence))
            if len(batch) == SENTENCES_AT_ONCE:
                yield from _encode(tokenizer, batch)
                batch = []
        yield from _encode(tokenizer, batch)

    def _model(self) -> models.Model:
        ids = {token: number for number, token in enumerate(self.tokens)}
        return models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD)


def read(path: Path) -> Vocabulary:
    """The vocabulary of a `vocab.txt`; FlagPerfError names the line that is wrong."""
    try:
        lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    except OSError as error:
        raise _unreadable(str(path), str(error)) from None
    first_line: dict[str, int] = {}
    for number, raw in enumerate(lines, start=1):
        token = _token(raw, f"{path}, line {number}")
        if token in first_line:
            raise _unreadable(f"{path}, line {number}", f"{token!r} stands in line {first_line[token]} too")
        first_line[token] = number
    missing = [token for token in SPECIAL_TOKENS if token not in first_line]
    if missing:
        raise _unreadable(str(path), f"lacks {', '.join(missing)}")
    return Vocabulary(tuple(first_line))


def train(sentences: Sequence[str], size: int) -> Vocabulary:
    """A WordPiece vocabulary of at most `size` tokens: the same for the same sentences.

    The `tokenizers` trainer numbers continued characters ("##a") in the order of a randomised hash map,
    and breaks ties between merges by those numbers. So the alphabet is counted here and handed over in a
    fixed order.
    """
    tokenizer = _uncased(Tokenizer(models.WordPiece(unk_token="[UNK]")))
    lowered = [_lower(sentence) for sentence in sentences]
    alphabet = _alphabet(tokenizer.normalizer.normalize_str(sentence) for sentence in lowered)
    fixed = [*SPECIAL_TOKENS, *alphabet, *(f"##{character}" for character in alphabet)]
    if len(fixed) >= size:
        raise FlagPerfError(
            f"a vocabulary of {size} cannot hold the text's {len(alphabet)} characters",
            where="--vocab-size",
            remedy=f"give more than {len(fixed)}",
        )
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=fixed,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lowered, trainer)
    ids: dict[str, int] = tokenizer.get_vocab()
    return Vocabulary(tuple(sorted(ids, key=ids.__getitem__)))


def as_text(vocabulary: Vocabulary) -> str:
    """The content of `vocab.txt`."""
    return "".join(f"{token}\n" for token in vocabulary.tokens)


def _lower(sentence: str) -> str:
    """Python's lower case, as in the reference: it knows the final sigma, the normalizer's does not."""
    return sentence.lower()


def _alphabet(normalised: Iterable[str]) -> list[str]:
    counts: Counter[str] = Counter()
    for sentence in normalised:
        counts.update(sentence)
    ranked = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))
    return sorted(ranked[:ALPHABET_LIMIT])


def _uncased(tokenizer: Tokenizer) -> Tokenizer:
    """Lower case, no accents, Chinese characters apart, split at white space and punctuation (BERT)."""
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _encode(tokenizer: Tokenizer, batch: list[str]) -> Iterator[array[int]]:
    for encoding in tokenizer.encode_batch(batch, add_special_tokens=False):
        yield array("i", encoding.ids)


def _token(raw: bytes, where: str) -> str:
    try:
        token = raw.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise _unreadable(where, f"not UTF-8: {raw[:40]!r}") from None
    if not token:
        raise _unreadable(where, "an empty line")
    return token


def _unreadable(where: str, why: str) -> FlagPerfError:
    return FlagPerfError(
        f"no WordPiece vocabulary: {why}",
        where=where,
        remedy="give a vocab.txt of an uncased BERT model (a token a line), or --vocab-size to train one",
    )
