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
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor


@dataclass(frozen=True)
class Part:
    """The sources, or the answers, of B questions: R rows, L the longest question's.

    Attributes:
        rows, longest: R and L.
        places: (R,) int64 where each row stands in the rectangle (B x L) read as one line; None: there is no
            padding, R is B x L.
    """

    rows: int
    longest: int
    places: Tensor | None

    def spread(self, rows: Tensor, questions: int) -> Tensor:
        """(R, heads, d) -> (B, heads, L, d), 0 in padding."""
        if self.places is not None:
            empty = rows.new_zeros(questions * self.longest, *rows.shape[1:])
            rows = empty.index_copy(0, self.places, rows)
        return rows.view(questions, self.longest, *rows.shape[1:]).transpose(1, 2)

    def gather(self, spread: Tensor) -> Tensor:
        """(B, heads, L, d) -> (R, heads, d)."""
        lines = spread.transpose(1, 2).flatten(0, 1)
        return lines if self.places is None else lines[self.places]


@dataclass(frozen=True)
class Layout:
    """B questions.

    Attributes:
        questions: B.
        source, answers: where the rows of each are.
        source_bias: (B, 1, 1, S) added to the sources' attention scores, -inf at padding; None: no padding.
        answer_bias: (B, 1, A, S + A) added to the answers' scores over source and answers, -inf at what a token
            does not see.
        offsets: (B + 1,) int64 where each source's rows begin, for kernels that take rows of several lengths as
            they are; None: attention over the rectangle.
    """

    questions: int
    source: Part
    answers: Part
    source_bias: Tensor | None
    answer_bias: Tensor
    offsets: Tensor | None = None

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
        key_rows, value_rows = (self.source.spread(rows[:first], self.questions) for rows in (key, value))
        k, v = (
            torch.cat([spread, self.answers.spread(rows[first:], self.questions)], dim=2)
            for spread, rows in ((key_rows, key), (value_rows, value))
        )
        q = self.answers.spread(query[first:] if source_asks else query, self.questions)
        mixed = self.answers.gather(_attention(q, k, v, self.answer_bias, dropout))
        if not source_asks:
            return mixed
        if self.offsets is not None:
            sources = self._ragged(query[:first], key[:first], value[:first], dropout)
        else:
            q = self.source.spread(query[:first], self.questions)
            sources = self.source.gather(_attention(q, key_rows, value_rows, self.source_bias, dropout))
        return torch.cat([sources, mixed])

    def _ragged(self, query: Tensor, key: Tensor, value: Tensor, dropout: float) -> Tensor:
        """The sources among themselves: PyTorch's nested tensors call the variable-length flash kernels."""
        q, k, v = (
            torch.nested.nested_tensor_from_jagged(
                rows.contiguous(), self.offsets, min_seqlen=1, max_seqlen=self.source.longest
            ).transpose(1, 2)
            for rows in (query, key, value)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        values: Tensor = mixed.transpose(1, 2).values()
        return values


def _attention(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, dropout: float) -> Tensor:
    if q.device.type != "cpu":
        mask = None if bias is None else bias.to(q.dtype)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
    # On a CPU two matrix products are faster than the fused kernel at these lengths. The softmax keeps the
    # products' type, out of autocast's hands: bf16 in, sums in fp32, bf16 out.
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    with torch.autocast("cpu", enabled=False):
        if bias is not None:
            scores = scores + bias.to(scores.dtype)
        probabilities = F.dropout(scores.softmax(dim=-1), dropout)
    return probabilities @ v
