"""From a passage of ReCoRD to questions in tokens, as GLM's own preparation makes them (THUDM/GLM, RecordPVP).

    source      [CLS] passage query-before [MASK] query-after [PAD]
    candidate   its tokens

In training each right answer is a question of its own, with wrong candidates beside it; in evaluation a question
has all candidates. A passage that is too long is cut at its end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.common.arrays import Array
from benchmarks.common.wordpiece import Vocabulary as WordPiece
from benchmarks.glm.clozes import Clozes
from benchmarks.glm.metric import exact_match, f1, normalised
from benchmarks.glm.prepare.lines import MalformedInputError
from benchmarks.glm.prepare.parameters import Parameters
from benchmarks.glm.prepare.record import Passage, Query
from benchmarks.glm.shards import Vocabulary

Tokens = Sequence[int]


@dataclass(frozen=True)
class Question:
    """One row of the data set; the lists go with `candidates`. `query` is its text around the blank."""

    source: Tokens
    blank: int
    candidates: tuple[str, ...]
    tokens: tuple[Tokens, ...]
    answers: tuple[str, ...]
    mentions: tuple[int, ...]
    query: str


@dataclass(frozen=True)
class QuestionMaker:
    """Makes the questions of passages; `is_training` as the module says."""

    wordpiece: WordPiece
    parameters: Parameters
    is_training: bool

    def of(self, passages: Sequence[Passage]) -> Iterator[Question]:
        """The questions of some passages, their queries in their order.

        Raises:
            MalformedInputError: a query or candidate is too long, or has no token.
        """
        tokens = self._tokens_of(passages)
        for passage in passages:
            draw = random.Random(f"{self.parameters.seed} {passage.index}")
            for query in passage.queries:
                for candidates, answers in self._choices(passage, query, draw):
                    yield self._question(passage, query, candidates, answers, tokens)

    def _tokens_of(self, passages: Sequence[Passage]) -> dict[str, Tokens]:
        """Every text that is needed, encoded: all at once, because the tokenizer works on many at a time."""
        texts = dict.fromkeys(text for passage in passages for text in _texts_of(passage))
        return dict(zip(texts, self.wordpiece.encode(texts), strict=True))

    def _choices(
        self, passage: Passage, query: Query, draw: random.Random
    ) -> Iterator[tuple[list[str], tuple[str, ...]]]:
        """(candidates, right answers) of each question that a query gives; candidates in the order of mention."""
        if not self.is_training:
            yield list(passage.mentions), query.answers
            return
        right = {normalised(answer) for answer in query.answers}
        wrong = [entity for entity in passage.mentions if normalised(entity) not in right]
        most = self.parameters.max_candidates - 1
        for answer in query.answers:
            kept = {answer, *(draw.sample(wrong, most) if len(wrong) > most else wrong)}
            in_order = [entity for entity in passage.mentions if entity in kept]
            yield in_order if answer in in_order else [*in_order, answer], (answer,)

    def _question(
        self,
        passage: Passage,
        query: Query,
        candidates: list[str],
        answers: tuple[str, ...],
        tokens_of: Mapping[str, Tokens],
    ) -> Question:
        text, before, after = (tokens_of[part] for part in (passage.text, query.before, query.after))
        tokens = tuple(tokens_of[candidate] for candidate in candidates)
        if not all(tokens):
            raise _unfit(passage, query, "a candidate without a token")
        room = self.parameters.seq_length - len(before) - len(after) - 3 - 1 - max(map(len, tokens))
        if room < 1:
            raise _unfit(passage, query, f"no room for the passage in {self.parameters.seq_length} tokens")
        kept, special = text[:room], self.wordpiece.id_of
        return Question(
            source=[special("[CLS]"), *kept, *before, special("[MASK]"), *after, special("[PAD]")],
            blank=1 + len(kept) + len(before),
            candidates=tuple(candidates),
            tokens=tokens,
            answers=answers,
            mentions=tuple(passage.mentions.get(candidate, 0) for candidate in candidates),
            query=f"{query.before} {query.after}",
        )


def _texts_of(passage: Passage) -> Iterator[str]:
    yield passage.text
    yield from passage.mentions
    for query in passage.queries:
        yield from (query.before, query.after, *query.answers)


def vocabulary_of(wordpiece: WordPiece) -> Vocabulary:
    """GLM puts two tokens after BERT's: start and end of a piece."""
    return Vocabulary(size=wordpiece.size + 2, start=wordpiece.size, end=wordpiece.size + 1)


def as_clozes(questions: Sequence[Question]) -> Clozes:
    """The questions as arrays."""
    chosen = [(question, candidate) for question in questions for candidate in question.candidates]
    tokens = [piece for question in questions for piece in question.tokens]
    return Clozes(
        sources=_joined([question.source for question in questions]),
        source_lengths=np.array([len(question.source) for question in questions], np.int64),
        blanks=np.array([question.blank for question in questions], np.int64),
        candidate_counts=np.array([len(question.candidates) for question in questions], np.int64),
        candidates=_joined(tokens),
        candidate_lengths=np.array([len(piece) for piece in tokens], np.int64),
        exact_match=np.array([exact_match(text, question.answers) for question, text in chosen], np.int8),
        f1=np.array([f1(text, question.answers) for question, text in chosen], np.float32),
        mentions=np.array([count for question in questions for count in question.mentions], np.int64),
        in_query=np.array([_names(question.query, text) for question, text in chosen], np.int8),
    )


def _names(query: str, candidate: str) -> bool:
    """Does the query name the candidate, as whole words?"""
    return f" {normalised(candidate)} " in f" {normalised(query)} "


def _joined(lists: Sequence[Tokens]) -> Array:
    return np.concatenate([np.asarray(one, np.int64) for one in lists] or [np.zeros(0, np.int64)])


def _unfit(passage: Passage, query: Query, why: str) -> MalformedInputError:
    remedy = "give a longer --seq-length, or ReCoRD as it is"
    return MalformedInputError(f"{query.name}: {why}", where=passage.where, remedy=remedy)
