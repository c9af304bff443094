"""How a batch's tokens lie in memory, and causal attention within each sample.

Everything in the model but attention treats tokens one by one, so that hidden states are (tokens, hidden)
throughout, without padding. Attention runs on the ragged samples as they are where there are kernels for that
(CUDA); elsewhere it lays them into a rectangle, where no token ever looks at the padding: that comes after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from benchmarks.common.pytorch.attention import Ragged, Rectangle, attention


@dataclass(frozen=True)
class Layout:
    """B samples.

    Attributes:
        offsets: (B + 1,) int64 where each sample's tokens begin.
        place: how attention sees them.
    """

    offsets: Tensor
    place: Ragged | Rectangle

    def attend(self, query: Tensor, key: Tensor, value: Tensor, dropout: float) -> Tensor:
        """Each token looks at itself and at those before it in its sample; all are (T, heads, d)."""
        if isinstance(self.place, Ragged):
            return self.place.attend(query, key, value, causal=True, dropout=dropout)
        q, k, v = (self.place.spread(rows) for rows in (query, key, value))
        return self.place.gather(attention(q, k, v, causal=True, dropout=dropout))
