"""A tiny BERT and its samples by formulas: the same in every framework, without a file or a generator of any.

The originals were run on them (`make_golden_*.py`); what they gave stands in `golden_*.json`.
It needs only numpy, for it is also imported beside the originals' own frameworks.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

MODEL: Mapping[str, Any] = {
    "vocab_size": 64,  # a multiple of 8, to which FlagPerf pads
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
LENGTH, PREDICTIONS, SAMPLES, EVALUATED = 16, 3, 6, 42
# Training: a step has SAMPLES samples; the rate falls linearly from RATE to what is left of it at DECAY_STEPS.
STEPS, DECAY_STEPS, RATE, CLIP, DECAY = 30, 40, 0.01, 1.0, 0.01
# The labels: mostly the model's commonest answers, so that some are right.
ANSWERS = np.array([24, 62, 59, 54, 28, 19, 9, 40])
# Which of the vocabulary's columns are written down.
COLUMNS = slice(None, None, 8)


def weight(name: str, shape: tuple[int, ...]) -> Any:
    """The float32 tensor that transformers calls `name`, a linear map's as (outputs, inputs)."""
    index = np.arange(int(np.prod(shape)), dtype=np.float64)
    values = np.sin(0.7 * index * index + 1.3 * index + zlib.crc32(name.encode()) % 1000).reshape(shape)
    if name.endswith("LayerNorm.weight"):
        values = 1.0 + 0.1 * values
    elif name == "cls.predictions.bias":  # so large that few tokens are answers, and some of these are right
        values = 4.0 * values
    elif name.endswith(
        ("intermediate.dense.weight", "transform.dense.weight")
    ):  # to where the forms of GELU differ
        values = 0.9 * values
    else:
        values = (0.3 if len(shape) > 1 else 0.1) * values
    return values.astype(np.float32)


def rows(first: int, samples: int = SAMPLES) -> dict[str, Any]:
    """`samples` samples from number `first` on, as a shard has them; lengths from 6 to 16, 1 to 3 predictions."""
    number = np.arange(first, first + samples)
    place = np.arange(LENGTH)
    lengths = 6 + number * 7 % 11
    is_token = place < lengths[:, None]
    ids = 5 + (number[:, None] * 31 + place * place * 7 + place * number[:, None]) % 59
    predictions = np.arange(PREDICTIONS)
    is_label = predictions <= (number % 3)[:, None]
    positions = 1 + predictions * 2 + (number % 2)[:, None] * (predictions == 2)
    labels = ANSWERS[(number[:, None] * 5 + predictions * predictions * 3) % len(ANSWERS)]
    return {
        "input_ids": np.where(is_token, ids, 0).astype("i4"),
        "input_mask": is_token.astype("i1"),
        "segment_ids": (is_token & (place > (lengths // 2)[:, None])).astype("i1"),
        "masked_lm_positions": np.where(is_label, positions, 0).astype("i4"),
        "masked_lm_ids": np.where(is_label, labels, 0).astype("i4"),
        "next_sentence_labels": (number * number % 5 % 2).astype("i1"),
    }


def rounded(values: Any) -> Any:
    """Numbers, or nests of them, to eight digits, as JSON has them."""
    if isinstance(values, dict):
        return {name: rounded(value) for name, value in values.items()}
    array = np.asarray(values, dtype=np.float64)
    return [rounded(value) for value in array] if array.ndim else float(f"{array:.8g}")
