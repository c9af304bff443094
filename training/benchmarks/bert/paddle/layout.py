"""How a batch's tokens lie in memory, and attention within each sample.

Everything in the model but attention treats tokens one by one, so that hidden states are (tokens, hidden)
throughout. On a GPU in 16 bits only real tokens are kept, sample after sample, and FlashAttention runs on
such ragged samples as they are. Otherwise a batch is a full rectangle (B x L) and attention hides the padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import paddle
import paddle.nn.functional as F  # noqa: N812 (its usual name)
from paddle import Tensor


@dataclass(frozen=True)
class Layout:
    """B samples of at most L tokens.

    Attributes:
        batch, longest: B and L.
        bias: (B, 1, 1, L) added to attention scores, -inf at padding; None: no padding, or ragged.
        offsets: (B + 1,) int32 where each sample's tokens begin; None: a full rectangle.
        ragged_type: what the kernel for ragged samples computes in, `bfloat16` or `float16`.
    """

    batch: int
    longest: int
    bias: Tensor | None = None
    offsets: Tensor | None = None
    ragged_type: Any = None

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
        if self.offsets is not None:
            return self._attend_ragged(query, key, value, self.offsets, queries, dropout)
        q = self._split(query, queries or self.longest)
        k, v = self._split(key, self.longest), self._split(value, self.longest)
        scores: Tensor = (q * query.shape[-1] ** -0.5).matmul(k, transpose_y=True)
        if self.bias is not None:
            scores = scores + self.bias.astype(scores.dtype)
        probabilities = F.dropout(F.softmax(scores), dropout) if dropout else F.softmax(scores)
        mixed: Tensor = (probabilities @ v).transpose([0, 2, 1, 3]).reshape(query.shape)
        return mixed

    def _split(self, rows: Tensor, length: int) -> Tensor:
        """(B * length, heads, d) -> (B, heads, length, d)."""
        return rows.reshape([self.batch, length, *rows.shape[1:]]).transpose([0, 2, 1, 3])

    def _attend_ragged(
        self, query: Tensor, key: Tensor, value: Tensor, offsets: Tensor, queries: int | None, dropout: float
    ) -> Tensor:
        """The same on ragged samples, by the variable-length kernel (fp16 and bf16 on a GPU only)."""
        asked = offsets
        if queries is not None:
            asked = paddle.arange(0, (self.batch + 1) * queries, queries, dtype="int32")
        q, k, v = (rows.astype(self.ragged_type) for rows in (query, key, value))
        scale = query.shape[-1] ** -0.5
        mixed, _ = F.flash_attention.flash_attn_unpadded(
            q, k, v, asked, offsets, queries or self.longest, self.longest, scale, dropout
        )
        return mixed
