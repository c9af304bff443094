"""Small BERT data sets for tests: random tokens in the real layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np

from benchmarks.bert.shards import EVALUATION_FILE, TRAINING_FOLDER

VOCABULARY, LENGTH, PREDICTIONS = 60, 16, 3

TINY_MODEL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": LENGTH,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def random_rows(
    samples: int, seed: int, *, full: bool = False, length: int = LENGTH, most: int = PREDICTIONS
) -> dict[str, Any]:
    """Samples of up to `length` tokens and `most` predictions; of exactly so many if `full`."""
    generator = np.random.default_rng(seed)
    least = most + 3
    lengths = np.full(samples, length) if full else generator.integers(least, length + 1, samples)
    is_token = np.arange(length) < lengths[:, None]
    predictions = np.full(samples, most) if full else generator.integers(1, most + 1, samples)
    is_label = np.arange(most) < predictions[:, None]
    positions = np.sort(np.stack([generator.permutation(np.arange(1, least))[:most] for _ in range(samples)]))
    return {
        "input_ids": np.where(is_token, generator.integers(5, VOCABULARY, (samples, length)), 0).astype("i4"),
        "input_mask": is_token.astype("i1"),
        "segment_ids": (is_token & (np.arange(length) > lengths[:, None] // 2)).astype("i1"),
        "masked_lm_positions": np.where(is_label, positions, 0).astype("i4"),
        "masked_lm_ids": np.where(is_label, generator.integers(5, 9, is_label.shape), 0).astype("i4"),
        "next_sentence_labels": generator.integers(0, 2, samples).astype("i1"),
    }


def write_shard(path: Path, rows: dict[str, Any], **options: Any) -> None:
    """Write one HDF5 file; `options` are h5py's, such as `compression`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for key, array in rows.items():
            file.create_dataset(key, data=array, **options)


def write_data(folder: Path, *, shards: tuple[int, ...] = (40, 24), evaluation: int = 11) -> Path:
    """A data directory with training shards of the given sizes and an evaluation set."""
    for number, samples in enumerate(shards):
        write_shard(folder / TRAINING_FOLDER / f"part_{number}.hdf5", random_rows(samples, seed=number))
    write_shard(folder / EVALUATION_FILE, random_rows(evaluation, seed=99))
    return folder
