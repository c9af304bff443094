"""What FlagPerf's CPM code and ours are both given: a tiny model's shape, documents in tokens, predictions, text."""

# ruff: noqa: RUF001 (Chinese punctuation)

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.benchmarks.common.formulas import wave

SHAPE: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 12,
}
INPUTS = 12  # of a sample; a chunk has a token more
PAD, END = 5, 7  # <pad> and <eod>, as in CPM-1's vocabulary
# Tokens of each document without its end: less than a chunk, exactly one, one token more, two and a bit, the least.
DOCUMENTS = (7, 12, 13, 30, 1)
TEXTS = ("白日依山尽，黄河入海流。\n", "The 2 rivers met 在北京, 2020年。", "我爱  自然语言处理。")


def documents() -> list[list[int]]:
    """The tokens of each document, its end not among them."""
    return [
        [8 + (7 * place * place + 5 * place + 13 * number) % 42 for place in range(length)]
        for number, length in enumerate(DOCUMENTS)
    ]


def metric_data(samples: int, length: int, vocabulary: int, hidden: int) -> tuple[Tensor, Tensor, Tensor]:
    """Predicted and right tokens (samples, length), every third of them alike, and an embedding of deviation 0.02."""
    places = torch.arange(samples * length).reshape(samples, length)
    right = (places * places + 3 * places) % vocabulary
    other = (5 * places * places + places + 1) % vocabulary
    embedding = 0.02 * 2**0.5 * wave((vocabulary, hidden), 0.0) + 0.005
    return torch.where(places % 3 == 0, right, other), right, embedding
