"""Model FLOPs of training GLM on clozes: what the mathematics needs, not what an implementation spends."""

from __future__ import annotations

import numpy as np

from benchmarks.common.shape import TransformerConfig
from benchmarks.glm.clozes import Clozes

FORMULA = (
    "3 x forward, matrix products only, 2 per multiply-add; question with a source of s tokens (passage, query, "
    "blank) and candidates of n_1 ... n_K tokens: the source and a start token are computed once, so a = 1 + sum n_k; "
    "P = s + 1 + sum n_k (s + 1 + (n_k + 1)/2) places that they see; H hidden, V vocabulary, N layers: "
    "(N - 1) [24(s + a)HH + 4Hss + 4HP] for all layers but the last, where only start and candidates ask: "
    "4sHH + 24aHH + 4HP; then 2aHV; padding is not counted"
)


def training_flops(config: TransformerConfig, clozes: Clozes) -> float:
    """Training FLOPs of the questions `clozes`. The backward pass takes twice the forward's.

    A layer has 12 HH weights: 3 for query, key and value, 1 for the output, 8 in the feed-forward part. Each token
    of a source attends to the source, and the i-th of a candidate to the source, the start and i tokens of its own.
    """
    h = config.hidden_size
    source = clozes.source_lengths.astype(np.float64)
    candidate = clozes.candidate_lengths.astype(np.float64)
    s, a = source.sum(), float(clozes.answer_rows.sum())
    of_candidates = candidate * (source[clozes.question_of] + 1 + (candidate + 1) / 2)
    seen = (source + 1).sum() + of_candidates.sum()
    lower = 24 * (s + a) * h * h + 4 * h * ((source * source).sum() + seen)
    last = 4 * s * h * h + 24 * a * h * h + 4 * h * seen
    return float(3 * ((config.num_layers - 1) * lower + last + 2 * a * h * config.vocab_size))
