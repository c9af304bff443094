"""Attention on rows of tokens: samples of different lengths, one after the other, as they lie or in a rectangle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor

from benchmarks.common.arrays import Array, within


@dataclass(frozen=True)
class Rectangle:
    """R rows of B samples, laid into a rectangle with a line for each sample.

    Attributes:
        samples, rows, longest: B, R and L: the rows of the longest sample, up to a multiple of 8, so that batches
            share their shapes (see linear.py).
        places: (R,) int64 where each row stands in the rectangle (B x L) read as one line; None: there is no
            padding, R is B x L.
    """

    samples: int
    rows: int
    longest: int
    places: Tensor | None = None

    @classmethod
    def of(cls, lengths: Array) -> Rectangle:
        """That of samples with `lengths` (B,) rows each."""
        longest, rows = -(-int(lengths.max()) // 8) * 8, int(lengths.sum())
        if rows == longest * len(lengths):
            return cls(len(lengths), rows, longest)
        places = np.repeat(np.arange(len(lengths)) * longest, lengths) + within(lengths)
        return cls(len(lengths), rows, longest, torch.from_numpy(places))

    def spread(self, rows: Tensor) -> Tensor:
        """(R, heads, d) -> (B, heads, L, d), 0 in padding."""
        if self.places is not None:
            empty = rows.new_zeros(self.samples * self.longest, *rows.shape[1:])
            rows = empty.index_copy(0, self.places, rows)
        return rows.view(self.samples, self.longest, *rows.shape[1:]).transpose(1, 2)

    def gather(self, spread: Tensor) -> Tensor:
        """(B, heads, L, d) -> (R, heads, d)."""
        lines = spread.transpose(1, 2).flatten(0, 1)
        return lines if self.places is None else lines[self.places]


def offsets_of(lengths: Array) -> Tensor:
    """(B + 1,) int64 where each sample's rows begin, and R."""
    return torch.from_numpy(np.append(0, np.cumsum(lengths, dtype=np.int64)))


def bias_of(is_seen: Array) -> Tensor:
    """What is added to attention scores: 0 where a key is seen, -inf elsewhere."""
    seen = torch.from_numpy(is_seen)
    return torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)


def attention(
    q: Tensor, k: Tensor, v: Tensor, *, bias: Tensor | None = None, causal: bool = False, dropout: float
) -> Tensor:
    """softmax(q k^T / sqrt(d) + bias) v.

    On a CPU as two matrix products: at 64 tokens in bf16 they are four times as fast as the fused kernel. The softmax
    keeps the products' type, out of autocast's hands: bf16 in, sums in fp32, bf16 out.

    Args:
        q: (B, heads, queries, d).
        k: (B, heads, keys, d).
        v: (B, heads, keys, d).
        bias: broadcast to (B, heads, queries, keys), -inf at what is not seen.
        causal: no token sees a later one; without a bias, and with as many queries as keys.
        dropout: of the attention probabilities.
    """
    if q.device.type != "cpu":
        mask = None if bias is None else bias.to(q.dtype)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=causal)
    if causal:
        bias = torch.full((q.shape[2], q.shape[2]), -torch.inf).triu(1)
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    with torch.autocast("cpu", enabled=False):
        if bias is not None:
            scores = scores + bias.to(scores.dtype)
        probabilities = F.dropout(scores.softmax(dim=-1), dropout)
    return probabilities @ v


@dataclass(frozen=True)
class Ragged:
    """Where the rows of B samples begin, `offsets` (B + 1,) int64, and the rows of the `longest`."""

    offsets: Tensor
    longest: int

    def nested(self, rows: Tensor) -> Tensor:
        """(rows, heads, d) -> nested (B, heads, rows of the sample, d)."""
        nested = torch.nested.nested_tensor_from_jagged(
            rows.contiguous(), self.offsets, min_seqlen=1, max_seqlen=self.longest
        )
        return nested.transpose(1, 2)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        asked: Ragged | None = None,
        causal: bool = False,
        dropout: float,
    ) -> Tensor:
        """`attention` on rows as they lie: PyTorch's nested tensors call the variable-length flash kernels.

        `asked` says where the query's rows begin, if not where the others do.
        """
        q, k, v = (asked or self).nested(query), self.nested(key), self.nested(value)
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=causal)
        values: Tensor = mixed.transpose(1, 2).values()
        return values
