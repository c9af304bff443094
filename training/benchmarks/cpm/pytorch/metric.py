"""The embedding average: how near the predicted tokens are to the right ones, sample by sample.

FlagPerf's metric of this case, after Liu et al. 2016 (arXiv:1603.08023). With E the model's own word embedding as it
is at the evaluation, and P and R the predicted (likeliest, teacher-forced) and right tokens of a sample where it has
labels:

    x = sum of E[p] over P,   y = sum of E[r] over R,   score = x . y / (|x| |y|)

and the metric is the mean score over samples. Sums are in float64: FlagPerf's fp16 sums read some 3e-4 higher. A
sample with |y| < 1e-11 is left out, one with |x| < 1e-11 scores 0. Order within the sample plays no part, and repeated
tokens count each time.
"""

from __future__ import annotations

import torch
from torch import Tensor

EPSILON = 1e-11


def embedding_average_sums(predicted: Tensor, right: Tensor, offsets: Tensor, embedding: Tensor) -> Tensor:
    """(2,) float64: the sum of the scores, and how many samples were scored.

    Args:
        predicted: (T,) int64 token ids, sample after sample.
        right: (T,) int64.
        offsets: (B + 1,) int64 where each sample begins.
        embedding: (vocabulary, hidden).
    """
    x, y = (_sums(tokens, offsets, embedding) for tokens in (predicted, right))
    x_norm, y_norm = x.norm(dim=-1), y.norm(dim=-1)
    cosine = (x * y).sum(dim=-1) / (x_norm * y_norm).clamp_min(EPSILON**2)
    scored = y_norm >= EPSILON
    scores = torch.where(scored & (x_norm >= EPSILON), cosine, 0.0)
    return torch.stack([scores.sum(), scored.sum().double()])


def _sums(tokens: Tensor, offsets: Tensor, embedding: Tensor) -> Tensor:
    """(B, hidden) float64: the embeddings of each sample's tokens added up."""
    sample = torch.repeat_interleave(offsets.diff(), output_size=len(tokens))
    sums = torch.zeros(len(offsets) - 1, embedding.shape[1], dtype=torch.float64, device=embedding.device)
    return sums.index_add_(0, sample, embedding.detach()[tokens].double())
