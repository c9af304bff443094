"""Sentence pairs and masks, drawn as BERT's reference preparation draws them.

Every random number is drawn from Python's `random.Random(seed)` in the reference's order
(google-research/bert `create_pretraining_data.py`, used unchanged for MLPerf's set), so that the same
text, vocabulary and parameters give the same samples: the MLPerf evaluation set can be made again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.bert.prepare.parameters import Parameters
from benchmarks.common.wordpiece import Vocabulary

Sentence = Sequence[int]
TokenDocument = Sequence[Sentence]
MASKED, KEPT = 0.8, 0.5  # 80 % [MASK]; of the rest, half kept and half replaced (BERT paper, 3.1)


class Instance(NamedTuple):
    """One sample. `ids`: [CLS] A [SEP] B [SEP], masked; `first_length`: how many belong to segment 0."""

    ids: list[int]
    first_length: int
    masked_positions: list[int]
    masked_ids: list[int]
    is_random_next: bool


@dataclass(frozen=True)
class Tokens:
    """The ids that packing and masking need, and how many ids there are."""

    cls: int
    sep: int
    mask: int
    count: int

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Tokens:
        return cls(
            vocabulary.id_of("[CLS]"), vocabulary.id_of("[SEP]"), vocabulary.id_of("[MASK]"), vocabulary.size
        )


def create(
    documents: Sequence[TokenDocument], parameters: Parameters, tokens: Tokens, rng: random.Random
) -> Iterator[Instance]:
    """The instances of `documents` in the order in which they are drawn (see `permutation`)."""
    shuffled = list(documents)
    rng.shuffle(shuffled)
    for _ in range(parameters.dup):
        for index in range(len(shuffled)):
            for pair in _pairs(shuffled, index, parameters, rng):
                yield _masked(pair, parameters, tokens, rng)


def permutation(count: int, rng: random.Random) -> list[int]:
    """The order in which the reference leaves `count` instances, drawn after the last of them."""
    order = list(range(count))
    rng.shuffle(order)
    return order


class _Pair(NamedTuple):
    first: list[int]
    second: list[int]
    is_random_next: bool


def _pairs(
    documents: Sequence[TokenDocument], index: int, parameters: Parameters, rng: random.Random
) -> Iterator[_Pair]:
    """Cut document `index` into chunks of about the target length, and each chunk into a pair."""
    longest = parameters.seq_length - 3  # room for [CLS], [SEP], [SEP]
    target = rng.randint(2, longest) if rng.random() < parameters.short_seq_prob else longest
    document = documents[index]
    chunk: list[Sentence] = []
    position = 0
    while position < len(document):
        chunk.append(document[position])
        if position == len(document) - 1 or sum(map(len, chunk)) >= target:
            split = rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
            first = _joined(chunk[:split])
            is_random_next = len(chunk) == 1 or rng.random() < 0.5
            if is_random_next:
                second = _from_elsewhere(documents, index, target - len(first), rng)
                position -= len(chunk) - split  # the sentences not used begin the next chunk
            else:
                second = _joined(chunk[split:])
            _truncate(first, second, longest, rng)
            yield _Pair(first, second, is_random_next)
            chunk = []
        position += 1


def _from_elsewhere(
    documents: Sequence[TokenDocument], index: int, wanted: int, rng: random.Random
) -> list[int]:
    """Sentences of at least `wanted` tokens (or to the end) from a random place of another document."""
    for _ in range(10):  # as the reference: gives up, rather than loop for ever, where there is no other
        other = rng.randint(0, len(documents) - 1)
        if other != index:
            break
    document = documents[other]
    tokens: list[int] = []
    for sentence in document[rng.randint(0, len(document) - 1) :]:
        tokens.extend(sentence)
        if len(tokens) >= wanted:
            break
    return tokens


def _truncate(first: list[int], second: list[int], longest: int, rng: random.Random) -> None:
    """Shorten the longer of the two, at a random end, token by token, until both fit."""
    while len(first) + len(second) > longest:
        longer = first if len(first) > len(second) else second
        del longer[0 if rng.random() < 0.5 else -1]


def _masked(pair: _Pair, parameters: Parameters, tokens: Tokens, rng: random.Random) -> Instance:
    """Pack the pair and mask 15 % of it, at most `max_predictions`, at least one."""
    original = [tokens.cls, *pair.first, tokens.sep, *pair.second, tokens.sep]
    candidates = [i for i, token in enumerate(original) if token not in (tokens.cls, tokens.sep)]
    rng.shuffle(candidates)
    wanted = min(parameters.max_predictions, max(1, round(len(original) * parameters.mask_prob)))
    ids = list(original)
    for position in candidates[:wanted]:
        if rng.random() < MASKED:
            ids[position] = tokens.mask
        elif rng.random() >= KEPT:
            ids[position] = rng.randint(0, tokens.count - 1)
    positions = sorted(candidates[:wanted])
    labels = [original[position] for position in positions]
    return Instance(ids, len(pair.first) + 2, positions, labels, pair.is_random_next)


def _joined(sentences: Sequence[Sentence]) -> list[int]:
    return [token for sentence in sentences for token in sentence]
