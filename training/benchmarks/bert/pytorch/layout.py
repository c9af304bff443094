"""How a batch's tokens lie in memory, and attention within each sample.

Everything in the model but attention treats tokens one by one, so that hidden states are (tokens, hidden)
throughout. On a GPU only real tokens are kept, sample after sample, and attention runs on such ragged
samples as they are. On a CPU a batch is a full rectangle (B x L) and attention hides the padding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.common.pytorch.attention import Ragged, attention


@dataclass(frozen=True)
class Layout:
    """B samples of at most L tokens.

    Attributes:
        batch, longest: B and L.
        bias: (B, 1, 1, L) added to attention scores, -inf at padding; None: no padding, or ragged.
        ragged: where each sample's tokens begin; None: a full rectangle.
    """

    batch: int
    longest: int
    bias: Tensor | None = None
    ragged: Ragged | None = None

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, *, queries: int | None, dropout: float
    ) -> Tensor:
        """softmax(q k^T / sqrt(d)) v within each sample; the result has the shape of `query`.

        Args:
            query: (tokens, heads, d), or (B * queries, heads, d) where only `queries` tokens a sample ask.
            key: (tokens, heads, d).
            value: (tokens, heads, d).
            queries: see `query`; None: every token asks.
            dropout: of the attention probabilities.
        """
        if self.ragged is not None:
            asked = None
            if queries is not None:
                asked = Ragged(torch.arange(self.batch + 1, device=query.device) * queries, queries)
            return self.ragged.attend(query, key, value, asked=asked, dropout=dropout)
        q = self._split(query, queries or self.longest)
        k, v = self._split(key, self.longest), self._split(value, self.longest)
        mixed = attention(q, k, v, bias=self.bias, dropout=dropout)
        return mixed.transpose(1, 2).reshape(query.shape)

    def _split(self, rows: Tensor, length: int) -> Tensor:
        """(B * length, heads, d) -> (B, heads, length, d)."""
        return rows.view(self.batch, length, *rows.shape[1:]).transpose(1, 2)
