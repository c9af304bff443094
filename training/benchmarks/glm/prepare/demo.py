"""The demo's passages and queries, in ReCoRD's form, from two English translations of one text.

A passage is a verse in one translation. A query is some clauses of it *in the other translation*, with a word replaced
by the placeholder that the passage has too: it tells in other words what the passage tells, as ReCoRD's queries do.
The candidates are words that occur in the passage, drawn at random beside the right ones: nouns, verbs, names, as they
come.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.common.preparation import text
from benchmarks.common.preparation.partial import Facts
from benchmarks.glm.prepare.record import PLACEHOLDER, plain_punctuation

BENCHMARKS = Path(__file__).parents[2]
DEMO_TEXTS = (
    BENCHMARKS / "bert" / "demo_data" / "kjv.txt.xz",
    BENCHMARKS / "glm" / "demo_data" / "web.txt.xz",
)
HELD_OUT = 40  # every so many chapters are for evaluation: no verse of theirs is trained on
MISSING = "-"  # of a verse that the other translation numbers otherwise
LONGEST_PASSAGE, SHORTEST_QUERY, LONGEST_QUERY = 24, 5, 12  # words
CANDIDATES = 6  # words of a passage that are candidates, its answers among them
HOLES = 4  # queries of a passage at most; their answers are candidates of each other
SHORTEST_WORD = 3  # letters, of a candidate
SEED = 7

_WORD = re.compile(r"[A-Za-z]+(?!['-]?[A-Za-z])")
_CLAUSE = re.compile(r'[^,.;:?!()"]*[,.;:?!()"]*\s*')
Chapters = Sequence[Sequence[str]]


def write_record(paths: Sequence[Path]) -> Facts:
    """Write train.jsonl and val.jsonl."""
    first, second = (read_chapters(path) for path in DEMO_TEXTS)
    count = Counter[str]()
    with ExitStack() as stack:
        streams = [stack.enter_context(path.open("w", encoding="utf-8")) for path in paths]
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            is_held_out = number % HELD_OUT == HELD_OUT - 1
            draw = random.Random(f"{SEED} {number}")
            for passage in chain(passages(one, other, draw), passages(other, one, draw)):
                line = {"source": "demo", "idx": count.total(), **passage}
                streams[is_held_out].write(json.dumps(line) + "\n")
                count["val" if is_held_out else "train"] += 1
    return {f"{name}_passages": number for name, number in count.items()}


def read_chapters(path: Path) -> Chapters:
    """The verses of each chapter, with plain quotation marks and dashes."""
    return [
        [plain_punctuation(verse).replace("\u2014", " - ") for verse in chapter]
        for chapter in text.documents(path)
    ]


def passages(chapter: Sequence[str], other: Sequence[str], draw: random.Random) -> Iterator[dict[str, Any]]:
    """ReCoRD's `passage` and `qas` of every verse that gives a question; `other` is the chapter retold."""
    for passage, retold in zip(chapter, other, strict=True):
        if MISSING in (passage, retold) or len(passage.split()) > LONGEST_PASSAGE:
            continue
        placed = list(_words(passage))
        words = {word.lower(): word for word, _ in reversed(placed)}  # "And" and "and" are one candidate
        holes = _drawn(draw, list(_holes(passage, retold)))
        answers = {answer.lower() for _, answer in holes}
        others = [word for small, word in sorted(words.items()) if small not in answers]
        if not holes or len(others) + len(holes) < CANDIDATES:
            continue
        candidates = {*(answer for _, answer in holes), *draw.sample(others, CANDIDATES - len(holes))}
        spans = [(word, start, start + len(word) - 1) for word, start in placed if word in candidates]
        yield {
            "passage": {"text": passage, "entities": [{"start": s, "end": e} for _, s, e in spans]},
            "qas": [
                {
                    "idx": number,
                    "query": query,
                    "answers": [
                        {"start": s, "end": e, "text": word} for word, s, e in spans if word == answer
                    ],
                }
                for number, (query, answer) in enumerate(holes)
            ],
        }


def _drawn(draw: random.Random, holes: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """A few of the holes, each with another answer."""
    draw.shuffle(holes)
    return [
        (query, answer) for answer, query in list({answer: query for query, answer in holes}.items())[:HOLES]
    ]


def _holes(verse: str, retold: str) -> Iterator[tuple[str, str]]:
    """(query, answer) for each word that both tellings of a verse have, and the retold one once."""
    shared = {word for word, _ in _words(verse)}
    times = Counter(word.lower() for word, _ in _words(retold))
    for word, start in _words(retold):
        begin, end = _clauses_around(retold, start)
        fits = SHORTEST_QUERY <= len(retold[begin:end].split()) <= LONGEST_QUERY
        if fits and word in shared and times[word.lower()] == 1:
            yield retold[begin:start] + PLACEHOLDER + retold[start + len(word) : end].rstrip(), word


def _words(verse: str) -> Iterator[tuple[str, int]]:
    """Words that may be candidates, and where they begin."""
    for word in _WORD.finditer(verse):
        if (
            len(word[0]) >= SHORTEST_WORD and word[0].lower() != "the"
        ):  # an article is nothing to ReCoRD's metric
            yield word[0], word.start()


def _clauses_around(verse: str, place: int) -> tuple[int, int]:
    """Begin and end of the clause at `place`, with those after and before it while it is too short."""
    spans = [clause.span() for clause in _CLAUSE.finditer(verse) if clause[0]]
    first = last = next(number for number, (_, end) in enumerate(spans) if place < end)

    def is_short() -> bool:
        return len(verse[spans[first][0] : spans[last][1]].split()) < SHORTEST_QUERY

    while is_short() and (first > 0 or last < len(spans) - 1):
        if last < len(spans) - 1:
            last += 1
        if is_short() and first > 0:
            first -= 1
    return spans[first][0], spans[last][1]
