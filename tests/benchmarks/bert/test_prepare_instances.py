"""Pairs and masks: the reference's draws, and the properties that BERT's paper states."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence

import pytest

from benchmarks.bert.prepare import instances
from benchmarks.bert.prepare.instances import Instance, TokenDocument, Tokens
from benchmarks.bert.prepare.parameters import Parameters
from tests.benchmarks.bert.prepare_data import HAND_MADE, REFERENCE

CLS, SEP, MASK, COUNT = 2, 3, 4, 60
TOKENS = Tokens(CLS, SEP, MASK, COUNT)

# Of a text of one document (seed 3): its random next can only come from itself.
REFERENCE_OF_ONE = [
    Instance([2, 13, 4, 3, 15, 16, 3], 4, [2], [14], False),
    Instance([2, 10, 11, 12, 3, 47, 16, 3], 5, [5], [15], True),
]
# The reference's instances of `random_documents()`: seed 7, sequence 64, 10 predictions, duplication 3.
REFERENCE_COUNT = 2887
REFERENCE_SHA256 = "ac83fcd7f67da2a815d7c8fb1fa8e81036cb6ef43760beb261c2d2fe71a752ec"


def random_documents() -> list[TokenDocument]:
    """200 documents of 1 to 25 sentences of 1 to 30 tokens."""
    rng = random.Random(1)
    return [
        [[rng.randint(5, 59) for _ in range(rng.randint(1, 30))] for _ in range(rng.randint(1, 25))]
        for _ in range(200)
    ]


def draw(documents: Sequence[TokenDocument], parameters: Parameters) -> list[Instance]:
    rng = random.Random(parameters.seed)
    drawn = list(instances.create(documents, parameters, TOKENS, rng))
    return [drawn[index] for index in instances.permutation(len(drawn), rng)]


@pytest.fixture(scope="module")
def many() -> list[Instance]:
    return draw(random_documents(), Parameters(seq_length=64, max_predictions=10, dup=10))


def test_hand_made_text_gives_the_references_instances() -> None:
    parameters = Parameters(seq_length=12, max_predictions=2, dup=2)
    assert draw(HAND_MADE, parameters) == REFERENCE


def test_a_larger_text_gives_the_references_instances() -> None:
    drawn = draw(random_documents(), Parameters(seq_length=64, max_predictions=10, dup=3, seed=7))
    assert len(drawn) == REFERENCE_COUNT
    plain = [tuple(instance) for instance in drawn]
    assert hashlib.sha256(repr(plain).encode()).hexdigest() == REFERENCE_SHA256


def test_an_instance_is_cls_a_sep_b_sep_within_the_length(many: list[Instance]) -> None:
    for instance in many:
        assert len(instance.ids) <= 64
        assert instance.ids[0] == CLS
        separators = [
            i for i, token in enumerate(instance.ids) if token == SEP and i not in replaced(instance)
        ]
        assert separators == [instance.first_length - 1, len(instance.ids) - 1]
        assert 3 <= instance.first_length <= len(instance.ids) - 2, "a segment is empty"


def replaced(instance: Instance) -> set[int]:
    """Masked positions: a random token put there may be [SEP]."""
    return set(instance.masked_positions)


def test_masks_never_fall_on_cls_and_sep_and_number_15_percent(many: list[Instance]) -> None:
    for instance in many:
        assert instance.masked_positions == sorted(set(instance.masked_positions))
        assert not {CLS, SEP} & set(instance.masked_ids)
        assert len(instance.masked_ids) == min(10, max(1, round(len(instance.ids) * 0.15)))
        assert len(instance.masked_ids) == len(instance.masked_positions)


def test_of_the_masked_80_percent_are_mask_10_kept_10_random(many: list[Instance]) -> None:
    pairs = [
        (instance.ids[position], label)
        for instance in many
        for position, label in zip(instance.masked_positions, instance.masked_ids, strict=True)
    ]
    masked = sum(token == MASK for token, _ in pairs) / len(pairs)
    kept = sum(token == label for token, label in pairs) / len(pairs)
    other = [token for token, label in pairs if token not in (MASK, label)]
    assert len(pairs) > 50_000
    # four standard deviations of a share of 0.8, 0.1 among 50,000 draws are 0.007, 0.005; one of the 60
    # random ids is [MASK] itself and one is the label
    assert masked == pytest.approx(0.8 + 0.1 / COUNT, abs=0.008)
    assert kept == pytest.approx(0.1 + 0.1 / COUNT, abs=0.006)
    assert len(other) / len(pairs) == pytest.approx(0.1 * (COUNT - 2) / COUNT, abs=0.006)
    assert set(other) == set(range(COUNT)) - {MASK}, "the whole vocabulary is drawn from"


def test_unmasked_tokens_are_the_texts() -> None:
    """With one token a document, what stands in an instance is the documents' own text."""
    documents = [[[number] * 5 for _ in range(6)] for number in range(5, 45)]
    for instance in draw(documents, Parameters(seq_length=32, max_predictions=5, dup=3)):
        original = restored(instance)
        first, second = (
            set(original[1 : instance.first_length - 1]),
            set(original[instance.first_length : -1]),
        )
        assert len(first) == len(second) == 1
        assert (first != second) == instance.is_random_next


def restored(instance: Instance) -> list[int]:
    original = list(instance.ids)
    for position, label in zip(instance.masked_positions, instance.masked_ids, strict=True):
        original[position] = label
    return original


def test_a_true_next_continues_the_document() -> None:
    documents = [[[100 * d + 3 * s + i for i in range(3)] for s in range(12)] for d in range(1, 30)]
    drawn = draw(documents, Parameters(seq_length=32, max_predictions=5, dup=4))
    following = [instance for instance in drawn if not instance.is_random_next]
    assert 0.3 < len(following) / len(drawn) < 0.5  # half of the chunks that have two sentences
    for instance in following:
        original = restored(instance)
        first, second = original[1 : instance.first_length - 1], original[instance.first_length : -1]
        assert first == list(range(first[0], first[0] + len(first)))
        assert second == list(range(second[0], second[0] + len(second)))
        gap = second[0] - first[-1]  # 1, or more where tokens at the seam were cut off to fit
        assert gap == 1 or len(original) == 32
        assert 1 <= gap < 12


def test_no_short_sequences_where_none_are_asked() -> None:
    documents = [[[7] * 10 for _ in range(40)] for _ in range(20)]
    drawn = draw(documents, Parameters(seq_length=64, max_predictions=10, short_seq_prob=0.0, dup=1))
    full = sum(len(instance.ids) == 64 for instance in drawn)
    assert full / len(drawn) > 0.9  # the end of a document is all that is shorter


def test_a_single_document_gives_the_references_instances() -> None:
    parameters = Parameters(seq_length=12, max_predictions=2, dup=1, seed=3)
    assert draw([[[10, 11, 12], [13, 14], [15, 16]]], parameters) == REFERENCE_OF_ONE


def test_the_seed_decides() -> None:
    one, same, other = (
        draw(HAND_MADE, Parameters(seq_length=12, max_predictions=2, seed=seed)) for seed in (1, 1, 2)
    )
    assert one == same != other
