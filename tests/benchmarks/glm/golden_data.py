"""What the originals' GLM code and ours are both given: a tiny model's shape, questions, and lines of ReCoRD."""

from __future__ import annotations

import json
from typing import Any

from tests.benchmarks.glm.plain import MASK, Question

SHAPE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 16,
    "num_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 24,
}
LONGEST_RECORD = 56  # tokens of a sequence: the last passage is cut

# Tokens of a WordPiece vocabulary: letters, the marks of the texts, some words and pieces.
VOCABULARY = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *"abcdefghijklmnopqrstuvwxyz0123456789.,-'\"!?@:",
    *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"),
    *("the", "in", "paris", "new", "york", "san", "mayor", "of", "went", "to", "highlight", "said", "##ing", "##ed"),
    *("river", "city", "and", "met", "old", "senate", "was", "walk", "hotel", "from", "at", "with", "marie"),
)  # fmt: skip


def questions() -> list[Question]:
    """Three questions with 9, 6 and 12 tokens of source and 4, 2 and 3 candidates; the first is right."""
    shapes = ((9, 3, (2, 1, 3, 2)), (6, 1, (1, 4)), (12, 10, (3, 3, 1)))
    made = []
    for number, (source, blank, candidates) in enumerate(shapes):
        text = [_token(number, place) for place in range(source)]
        text[blank] = MASK
        answers = [[_token(number, 40 * (k + 1) + i) for i in range(n)] for k, n in enumerate(candidates)]
        made.append(Question(text, answers, right=0))
    return made


def _token(number: int, place: int) -> int:
    return 5 + (7 * place * place + 11 * place + 17 * number) % 54


def record_lines() -> list[str]:
    """Four passages with five questions: typographic marks, accents, highlights, several answers, one too long."""
    return [
        json.dumps(_passage(index, text, entities, asked), ensure_ascii=False)
        for index, (text, entities, asked) in enumerate(_PASSAGES)
    ]


_PASSAGES: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]], ...] = (
    (
        "Marie met the mayor of Paris\u2013Nord in New York.\n@highlight\nThe mayor walked to the river",
        ("Marie", "Paris\u2013Nord", "New York"),
        (
            ("The mayor came from @placeholder.", ("Paris\u2013Nord",)),
            ("@placeholder saw the \u201cmayor\u201d at the river", ("Marie",)),
        ),
    ),
    (
        "\u201cOld San Jos\u00e9 was the city,\u201d said the Senate. SAN JOS\u00c9 went on.",
        ("Old San Jos\u00e9", "San Jos\u00e9", "Senate", "SAN JOS\u00c9"),
        (("They met with people in @placeholder !", ("Old San Jos\u00e9", "San Jos\u00e9")),),
    ),
    (
        "O'Hara\u2019s hotel: 3 walks from the river, said O'Hara.",
        ("O'Hara\u2019s", "O'Hara"),
        (("Walking from  @placeholder  hotel to the river", ("O'Hara\u2019s",)),),
    ),
    (
        "The mayor of the old city went to the river and met Marie at the hotel in Paris with the old mayor "
        "of New York and the Senate of San Marino was in the city and the mayor walked to the hotel again",
        ("Marie", "Paris", "New York", "Senate", "San Marino"),
        (("The mayor met @placeholder at the hotel", ("Marie",)),),
    ),
)


def _passage(
    index: int, text: str, entities: tuple[str, ...], asked: tuple[tuple[str, tuple[str, ...]], ...]
) -> dict[str, Any]:
    spans = [{"start": text.index(name), "end": text.index(name) + len(name) - 1} for name in entities]
    answered = [
        {
            "idx": 10 * index + number,
            "query": query,
            "answers": [{"start": 0, "end": 0, "text": name} for name in answers],
        }
        for number, (query, answers) in enumerate(asked)
    ]
    return {
        "source": "test",
        "idx": index,
        "passage": {"text": text, "entities": spans},
        "qas": answered,
    }
