"""How a batch's tokens lie in memory, and attention within each sample.

Everything in the model but attention treats tokens one by one, so that hidden states are (tokens, hidden)
throughout. On a GPU only real tokens are kept, sample after sample, and attention runs on such ragged
samples as they are. On a CPU a batch is a full rectangle (B x L) and attention hides the padding.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """B samples of at most L tokens.

    Attributes:
        batch, longest: B and L.
        bias: (B, 1, 1, L) added to attention scores, -inf at padding; None: no padding, or ragged.
        offsets: (B + 1,) int64 where each sample's tokens begin; None: a full rectangle.
    """

    batch: int
    longest: int
    bias: Tensor | None = None
    offsets: Tensor | None = None

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
            return self._attend_ragged(query, key, value, queries, dropout)
        q = self._split(query, queries or self.longest)
        k, v = self._split(key, self.longest), self._split(value, self.longest)
        if query.device.type == "cpu":
            mixed = _attend_by_products(q, k, v, self.bias, dropout)
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias, dropout_p=dropout)
        return mixed.transpose(1, 2).reshape(query.shape)

    def _split(self, rows: Tensor, length: int) -> Tensor:
        """(B * length, heads, d) -> (B, heads, length, d)."""
        return rows.view(self.batch, length, *rows.shape[1:]).transpose(1, 2)

    def _attend_ragged(
        self, query: Tensor, key: Tensor, value: Tensor, queries: int | None, dropout: float
    ) -> Tensor:
        """The same on ragged samples: PyTorch's nested tensors call the variable-length flash kernels."""
        if queries is None:
            q = self._nested(query, self.offsets, self.longest)
        else:
            asked = torch.arange(self.batch + 1, device=query.device) * queries
            q = self._nested(query, asked, queries)
        k = self._nested(key, self.offsets, self.longest)
        v = self._nested(value, self.offsets, self.longest)
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        return mixed.transpose(1, 2).values()

    @staticmethod
    def _nested(rows: Tensor, offsets: Tensor | None, longest: int) -> Tensor:
        """(tokens, heads, d) -> nested (B, heads, tokens of the sample, d)."""
        nested = torch.nested.nested_tensor_from_jagged(
            rows.contiguous(), offsets, min_seqlen=1, max_seqlen=longest
        )
        return nested.transpose(1, 2)


def _attend_by_products(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, dropout: float) -> Tensor:
    """Attention as two matrix products: on a CPU the fused kernel is 4 times slower in bf16 at 64 tokens.

    The softmax keeps the products' type, out of autocast's hands: bf16 in, sums in fp32, bf16 out.
    """
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    with torch.autocast("cpu", enabled=False):
        if bias is not None:
            scores = scores + bias.to(scores.dtype)
        probabilities = F.dropout(scores.softmax(dim=-1), dropout)
    return probabilities @ v
