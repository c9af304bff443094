"""How a batch's tokens lie in memory, and causal attention within each sample.

Everything in the model but attention treats tokens one by one, so that hidden states are (tokens, hidden)
throughout, without padding. Attention runs on the ragged samples as they are where there are kernels for that
(CUDA); elsewhere it lays them into a rectangle, where no token ever looks at the padding: that comes after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """B samples of at most L tokens, T in all.

    Attributes:
        batch, longest: B and L.
        offsets: (B + 1,) int64 where each sample's tokens begin.
        places: (T,) int64 where each token lies in a rectangle B x L; None where there is no padding.
        ragged: attend to the samples as they lie; else in a rectangle.
    """

    batch: int
    longest: int
    offsets: Tensor
    places: Tensor | None = None
    ragged: bool = False

    def attend(self, query_key_value: Tensor, dropout: float) -> Tensor:
        """softmax(q k^T / sqrt(d)) v, each token looking at itself and at those before it in its sample.

        Args:
            query_key_value: (T, 3, heads, d).
            dropout: of the attention probabilities.

        Returns:
            (T, heads, d).
        """
        if self.ragged:
            q, k, v = (self._nested(rows) for rows in query_key_value.unbind(1))
            mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
            return mixed.transpose(1, 2).values()
        rectangle = self._in_rectangle(query_key_value)
        by_sample = rectangle.view(self.batch, self.longest, *rectangle.shape[1:])
        q, k, v = by_sample.permute(2, 0, 3, 1, 4)
        if q.device.type == "cpu":
            mixed = _attend_by_products(q, k, v, dropout)
        else:
            mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        mixed = mixed.transpose(1, 2).flatten(0, 1)
        return mixed if self.places is None else mixed[self.places]

    def _in_rectangle(self, rows: Tensor) -> Tensor:
        """(T, ...) -> (B * L, ...), zeros in padding."""
        if self.places is None:
            return rows
        empty = rows.new_zeros(self.batch * self.longest, *rows.shape[1:])
        return empty.index_copy(0, self.places, rows)

    def _nested(self, rows: Tensor) -> Tensor:
        """(T, heads, d) -> nested (B, heads, tokens of the sample, d), for the variable-length flash kernels."""
        nested = torch.nested.nested_tensor_from_jagged(
            rows.contiguous(), self.offsets, min_seqlen=1, max_seqlen=self.longest
        )
        return nested.transpose(1, 2)


def _attend_by_products(q: Tensor, k: Tensor, v: Tensor, dropout: float) -> Tensor:
    """Attention (B, heads, L, d) as two matrix products: on a CPU in bf16 up to four times the fused kernel's speed.

    The softmax keeps the products' type, out of autocast's hands: bf16 in, sums in fp32, bf16 out.
    """
    later = torch.full((q.shape[2], q.shape[2]), -torch.inf).triu(1)
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    with torch.autocast("cpu", enabled=False):
        probabilities = F.dropout((scores + later.to(scores.dtype)).softmax(dim=-1), dropout)
    return probabilities @ v
