"""Questions as arrays: a batch of clozes, whatever the framework."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.common.arrays import Array, spans, starts


@dataclass(frozen=True)
class Clozes:
    """B questions with C candidates in all; ragged columns are flat, one after the other.

    Attributes:
        sources: (source tokens of all questions,) `[CLS] passage query [MASK] query [PAD]`.
        source_lengths: (B,).
        blanks: (B,) place of [MASK] in the source.
        candidate_counts: (B,).
        candidates: (tokens of all candidates,), without start and end token.
        candidate_lengths: (C,).
        exact_match: (C,) what choosing this candidate earns: 1 or 0. In training one of a question is right.
        f1: (C,) likewise, 0 to 1.
        mentions: (C,) how often the passage names it (for the trivial answers).
        in_query: (C,) 1 if the query names it too.
    """

    sources: Array
    source_lengths: Array
    blanks: Array
    candidate_counts: Array
    candidates: Array
    candidate_lengths: Array
    exact_match: Array
    f1: Array
    mentions: Array
    in_query: Array

    def __len__(self) -> int:
        return len(self.source_lengths)

    @property
    def longest_sequence(self) -> int:
        """Tokens of the longest source together with a start token and the longest of its candidates."""
        lengths = self.source_lengths[self.question_of] + self.candidate_lengths
        return int(lengths.max(initial=0)) + 1

    @property
    def answer_rows(self) -> Array:
        """(B,) what is computed of a question's candidates: a start token for all, and the tokens of each."""
        rows: Array = 1 + np.add.reduceat(self.candidate_lengths.astype(np.int64), self._first_candidates)
        return rows

    @property
    def tokens(self) -> int:
        """Tokens that are computed: each source once, a start token, and every candidate."""
        return int(self.source_lengths.sum(dtype=np.int64) + self.answer_rows.sum())

    @property
    def question_of(self) -> Array:
        """(C,) which question each candidate belongs to."""
        return np.repeat(np.arange(len(self)), self.candidate_counts)

    def take(self, order: Array) -> Clozes:
        """The questions `order`, in that order."""
        chosen = spans(self._first_candidates[order], self.candidate_counts[order])
        lengths = self.source_lengths[order]
        candidate_lengths = self.candidate_lengths[chosen]
        return Clozes(
            sources=self.sources[spans(self._first_tokens[order], lengths)],
            source_lengths=lengths,
            blanks=self.blanks[order],
            candidate_counts=self.candidate_counts[order],
            candidates=self.candidates[spans(self._first_candidate_tokens[chosen], candidate_lengths)],
            candidate_lengths=candidate_lengths,
            exact_match=self.exact_match[chosen],
            f1=self.f1[chosen],
            mentions=self.mentions[chosen],
            in_query=self.in_query[chosen],
        )

    @cached_property
    def _first_tokens(self) -> Array:
        return starts(self.source_lengths)

    @cached_property
    def _first_candidates(self) -> Array:
        return starts(self.candidate_counts)

    @cached_property
    def _first_candidate_tokens(self) -> Array:
        return starts(self.candidate_lengths)
