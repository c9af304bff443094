"""Model FLOPs of training CPM: what the mathematics needs, not what an implementation spends."""

from __future__ import annotations

import numpy as np

from benchmarks.common.arrays import Array
from benchmarks.common.shape import TransformerConfig

FORMULA = (
    "3 x forward, matrix products only, 2 per multiply-add; sample of t inputs and t labels; H hidden, V vocabulary, "
    "N layers: N [24tHH + 2t(t + 1)H] + 2tHV; padding is not counted, nor attention to later tokens"
)


def training_flops(config: TransformerConfig, lengths: Array) -> float:
    """Training FLOPs of samples with `lengths` (B,) inputs each. The backward pass takes twice the forward's.

    A layer has 12 HH weights: 3 for query, key and value, 1 for the output, 8 in the feed-forward part. Input i
    attends to i tokens, so that the two products of attention take 4H times t(t + 1)/2.
    """
    t, h = lengths.astype(np.float64), config.hidden_size
    layer = 24 * t * h * h + 2 * t * (t + 1) * h
    return float(3 * np.sum(config.num_layers * layer + 2 * t * h * config.vocab_size))
