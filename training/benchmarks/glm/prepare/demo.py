"""The demo's passages and queries, in ReCoRD's form, from two English translations of one text.

A passage is two verses that follow each other in one translation. A query is a clause or two of one of these verses
*in the other translation*, with a name replaced by the placeholder; the candidates are the names in the passage. So a
query says in other words what the passage says, as ReCoRD's queries do, and the right name stands in the passage where
the same is told.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.glm.prepare.record import PLACEHOLDER, plain_punctuation
from utils.preparation import text
from utils.preparation.workshop import Facts

BENCHMARKS = Path(__file__).parents[2]
DEMO_TEXTS = (
    BENCHMARKS / "bert" / "demo_data" / "kjv.txt.xz",
    BENCHMARKS / "glm" / "demo_data" / "web.txt.xz",
)
HELD_OUT = 10  # every so many chapters are for evaluation: no verse of theirs is trained on
MISSING = "-"  # of a verse that the other translation numbers otherwise
VERSES = 2
LONGEST_PASSAGE, SHORTEST_QUERY, LONGEST_QUERY = 40, 8, 16  # words
FEWEST_CHOICES = 3  # candidates that the query does not name
MOST_CANDIDATES = 10
RAREST_NAME = 5  # occurrences in each translation; a rarer one is no candidate
NO_NAMES = {"God", "Lord", "Christ", "Spirit"}  # titles, which the translations interchange

_WORD = re.compile(r"[A-Za-z]+(?!['-]?[A-Za-z])")
_CLAUSE = re.compile(r'[^,.;:?!()"]*[,.;:?!()"]*\s*')
Chapters = Sequence[Sequence[str]]


def write_record(paths: Sequence[Path]) -> Facts:
    """Write train.jsonl and val.jsonl."""
    first, second = (read_chapters(path) for path in DEMO_TEXTS)
    names = names_in_both(first, second)
    counts: Counter[str] = Counter()
    streams = [path.open("w", encoding="utf-8") for path in paths]
    for told, retold in ((first, second), (second, first)):
        for number, (chapter, other) in enumerate(zip(told, retold, strict=True)):
            is_held_out = number % HELD_OUT == HELD_OUT - 1
            for passage in passages(chapter, other, names):
                line = {"source": "demo", "idx": sum(counts.values()), **passage}
                streams[is_held_out].write(json.dumps(line) + "\n")
                counts["val" if is_held_out else "train"] += 1
    for stream in streams:
        stream.close()
    return {f"{name}_passages": count for name, count in counts.items()}


def read_chapters(path: Path) -> Chapters:
    """The verses of each chapter."""
    return [[plain_punctuation(verse) for verse in chapter] for chapter in text.documents(path)]


def names_in_both(first: Chapters, second: Chapters) -> frozenset[str]:
    """Words that are names in both translations: capital within a sentence, never small, and not rare."""
    in_first, in_second = (_names(chapters) for chapters in (first, second))
    return frozenset(in_first & in_second) - NO_NAMES


def _names(chapters: Chapters) -> set[str]:
    seen: Counter[str] = Counter()
    within_a_sentence, small = set(), set()
    for verse in (verse for chapter in chapters for verse in chapter):
        for word in re.finditer("[A-Za-z]+", verse):
            seen[word[0]] += 1
            if word[0][0].islower():
                small.add(word[0])
            elif re.search("[a-z] $", verse[: word.start()]):
                within_a_sentence.add(word[0])
    return {
        word
        for word in within_a_sentence
        if not word.isupper() and word.lower() not in small and seen[word] >= RAREST_NAME
    }


def passages(chapter: Sequence[str], other: Sequence[str], names: frozenset[str]) -> Iterator[dict[str, Any]]:
    """ReCoRD's `passage` and `qas` of every pair of verses that has a question; `other` is the chapter retold."""
    for begin in range(len(chapter) - VERSES + 1):
        verses = chapter[begin : begin + VERSES]
        passage = " ".join(verses)
        if MISSING in verses or len(passage.split()) > LONGEST_PASSAGE:
            continue
        entities = list(_found(passage, names))
        candidates = {name for name, _ in entities}
        if len(candidates) > MOST_CANDIDATES:
            continue
        holes = [
            hole
            for verse, retold in zip(verses, other[begin : begin + VERSES], strict=True)
            for hole in _holes(retold, {name for name, _ in _found(verse, names)}, candidates, names)
        ]
        if holes:
            spans = [{"start": start, "end": start + len(name) - 1} for name, start in entities]
            yield {
                "passage": {"text": passage, "entities": spans},
                "qas": [_qas(number, hole, entities) for number, hole in enumerate(holes)],
            }


def _qas(number: int, hole: tuple[str, str], entities: Sequence[tuple[str, int]]) -> dict[str, Any]:
    query, answer = hole
    spans = [
        {"start": start, "end": start + len(name) - 1, "text": name}
        for name, start in entities
        if name == answer
    ]
    return {"idx": number, "query": query, "answers": spans}


def _holes(
    retold: str, told_here: set[str], candidates: set[str], names: frozenset[str]
) -> Iterator[tuple[str, str]]:
    """(query, answer) for each name in the retold verse that its counterpart in the passage has too."""
    for name, start in _found(retold, names):
        if name not in told_here:
            continue
        begin, end = _clauses_around(retold, start)
        before, after = retold[begin:start], retold[start + len(name) : end].rstrip()
        in_query = {other for other, _ in _found(f"{before} {after}", names)}
        length = len(retold[begin:end].split())
        fits = SHORTEST_QUERY <= length <= LONGEST_QUERY and len(candidates - in_query) >= FEWEST_CHOICES
        if fits and name not in in_query:
            yield before + PLACEHOLDER + after, name


def _found(verse: str, names: frozenset[str]) -> Iterator[tuple[str, int]]:
    return ((word[0], word.start()) for word in _WORD.finditer(verse) if word[0] in names)


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
