"""How a batch's tokens lie in memory, and attention within each question.

A question is a *source* (passage and query with its blank) and the *answers* (each candidate's tokens). The
source sees itself, both ways; an answer sees the source and its own tokens up to each. As nothing in the
source sees an answer, the source is computed once, however many candidates there are.

Everything but attention treats tokens one by one, so hidden states are rows (tokens, hidden): those of all
sources first, then those of all answers, question after question, without padding. For attention the rows
of each part are spread over a rectangle with a line for each question.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.common.pytorch.attention import Ragged, Rectangle, attention


@dataclass(frozen=True)
class Layout:
    """B questions.

    Attributes:
        source, answers: where the rows of each are.
        source_bias: (B, 1, 1, S) added to the sources' attention scores, -inf at padding; None: no padding.
        answer_bias: (B, 1, A, S + A) added to the answers' scores over source and answers, -inf at what a token
            does not see.
        ragged: for kernels that take the sources' rows as they lie; None: attention over the rectangle.
    """

    source: Rectangle
    answers: Rectangle
    source_bias: Tensor | None
    answer_bias: Tensor
    ragged: Ragged | None = None

    def attend(self, query: Tensor, key: Tensor, value: Tensor, dropout: float) -> Tensor:
        """softmax(q k^T / sqrt(d) + bias) v; the result has the shape of `query`.

        Args:
            query: (rows, heads, d) of all rows, or of the answers' alone: then only they ask.
            key: (rows, heads, d).
            value: (rows, heads, d).
            dropout: of the attention probabilities.
        """
        first = self.source.rows
        source_asks = len(query) == len(key)
        key_rows, value_rows = (self.source.spread(rows[:first]) for rows in (key, value))
        k, v = (
            torch.cat([spread, self.answers.spread(rows[first:])], dim=2)
            for spread, rows in ((key_rows, key), (value_rows, value))
        )
        q = self.answers.spread(query[first:] if source_asks else query)
        mixed = self.answers.gather(attention(q, k, v, bias=self.answer_bias, dropout=dropout))
        if not source_asks:
            return mixed
        if self.ragged is not None:
            sources = self.ragged.attend(query[:first], key[:first], value[:first], dropout=dropout)
        else:
            q = self.source.spread(query[:first])
            sources = self.source.gather(
                attention(q, key_rows, value_rows, bias=self.source_bias, dropout=dropout)
            )
        return torch.cat([sources, mixed])
