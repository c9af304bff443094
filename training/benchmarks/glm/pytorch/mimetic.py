"""Initial weights with which a small model learns from few questions: attention that begins as similarity.

With the usual normal weights attention begins at random, and a small GLM that is trained from nothing on one blank
per sequence does not find within a short run that a blank is told by the words beside it. Trockman and Kolter 2023
(arXiv:2305.09828) begin where trained transformers end: the product of query and key maps near the identity, so that
like attends to like, the product of value and output maps too, and sinusoidal positions, so that neighbours are alike.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

LIKENESS = 1.0  # share of the identity in each product
NOISE = 0.3  # share of a random matrix beside it, so that heads differ
EMBEDDING_STD = 0.1  # of words; sinusoids have this amplitude, so that words and places weigh alike
LONGEST_WAVE = 10.0  # in units of the shortest, 2 pi: neighbours are alike, places far off are not


@torch.no_grad()
def begin_embeddings(words: nn.Embedding, positions: nn.Embedding) -> None:
    """Overwrite the weights of both tables."""
    words.weight.normal_(std=EMBEDDING_STD)
    positions.weight.copy_(EMBEDDING_STD * sinusoids(*positions.weight.shape))


@torch.no_grad()
def begin_attention(query_key_value: nn.Linear, output: nn.Linear, heads: int) -> None:
    """Overwrite the weights of an attention part with `heads` heads."""
    size = output.out_features
    width = size // heads
    query, key, value = query_key_value.weight.view(3, heads, width, size)
    for head in range(heads):
        query[head], key[head] = _factors(size, width)
        outwards, value[head] = _factors(size, width)
        output.weight[:, head * width : (head + 1) * width] = outwards.T


def sinusoids(places: int, size: int) -> Tensor:
    """(places, size): sine and cosine in turn, wavelengths in a geometric row (Vaswani et al. 2017)."""
    frequencies = torch.exp(-torch.arange(0, size, 2) / size * math.log(LONGEST_WAVE))
    angles = torch.arange(places)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def _factors(size: int, width: int) -> tuple[Tensor, Tensor]:
    """(width, size) twice, A and B, so that A^T B is the best approximation of a noisy identity at that rank."""
    wanted = LIKENESS * torch.eye(size) + NOISE * torch.randn(size, size) / math.sqrt(size)
    left, strengths, right = torch.linalg.svd(wanted)
    roots = strengths[:width].sqrt()
    return (left[:, :width] * roots).T, right[:width] * roots[:, None]
