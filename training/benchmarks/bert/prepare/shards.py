"""The HDF5 files of MLPerf's Wikipedia set: names, keys, types; written and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import h5py

from benchmarks.bert.prepare.samples import Array
from utils.resumable import unfinished

TRAIN_FOLDER = "2048_shards_uncompressed"  # MLPerf's name, kept whatever the number of shards
EVAL_FILE = "eval_set_uncompressed/part_eval_10k.hdf5"
TYPES = {
    "input_ids": "i4",
    "input_mask": "i1",
    "segment_ids": "i1",
    "masked_lm_positions": "i4",
    "masked_lm_ids": "i4",
    "next_sentence_labels": "i1",
}
"""Those of NVIDIA's converter up to MLPerf v1.1; later rounds write "i2" for "i4"."""


def shard_name(index: int, count: int) -> str:
    return f"{TRAIN_FOLDER}/part_{index:05d}_of_{count:05d}.hdf5"


def shard_bounds(samples: int, shards: int) -> list[int]:
    """Cut `samples` into `shards` runs whose lengths differ by at most one: their n + 1 bounds."""
    return [samples * index // shards for index in range(shards + 1)]


def write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write one file, uncompressed; it appears whole or not at all."""
    with unfinished(path) as temporary, h5py.File(temporary, "w") as file:
        for key, dtype in TYPES.items():
            file.create_dataset(key, data=arrays[key], dtype=dtype)
