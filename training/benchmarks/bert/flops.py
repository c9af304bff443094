"""Model FLOPs of BERT pre-training: what the mathematics needs, not what an implementation spends."""

from __future__ import annotations

import numpy as np

from benchmarks.bert.shape import BertConfig
from benchmarks.common.arrays import Array

FORMULA = (
    "3 x forward, matrix products only, 2 per multiply-add; sample of t tokens and p predictions, "
    "q = p + 1; H hidden, I intermediate, V vocabulary, N layers: "
    "(N - 1) [8tHH + 4tHI + 4ttH] + [4tHH + 4qHH + 4qHI + 4qtH] + p [2HH + 2HV] + 2HH + 4H; "
    "padding and logits without a label are not counted"
)


def training_flops(config: BertConfig, tokens: Array, predictions: Array) -> float:
    """Training FLOPs of samples with `tokens` (B,) tokens and `predictions` (B,) predictions each.

    The backward pass takes twice the forward's. The last layer needs keys and values of every token, and everything
    else only at [CLS] and the predicted tokens: no label depends on its other outputs.
    """
    t, p = tokens.astype(np.float64), predictions.astype(np.float64)
    q, h, i, v = p + 1, config.hidden_size, config.intermediate_size, config.vocab_size
    full = 8 * t * h * h + 4 * t * h * i + 4 * t * t * h
    last = 4 * t * h * h + 4 * q * h * h + 4 * q * h * i + 4 * q * t * h
    heads = p * (2 * h * h + 2 * h * v) + 2 * h * h + 4 * h
    return float(3 * np.sum((config.num_hidden_layers - 1) * full + last + heads))
