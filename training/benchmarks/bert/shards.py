"""BERT's pre-training samples in HDF5 shards: the layout of MLPerf's Wikipedia set, written, checked and read.

A shard holds, for its n samples of length S with at most P predictions each:

    input_ids (n, S)  input_mask (n, S)  segment_ids (n, S)      padded at the end with 0
    masked_lm_positions (n, P)  masked_lm_ids (n, P)             padded at the end with position 0
    next_sentence_labels (n,) or (n, 1)

Position 0 is [CLS], which is never predicted, so that a position of 0 means "none".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from benchmarks.common.arrays import Array
from benchmarks.common.sample_files import Columns, files_in, unreadable
from utils.errors import FlagPerfError

TRAINING_FOLDER = "2048_shards_uncompressed"  # MLPerf's name, kept whatever the number of shards
EVALUATION_FILE = "eval_set_uncompressed/part_eval_10k.hdf5"  # likewise
TYPES = {
    "input_ids": "i4",
    "input_mask": "i1",
    "segment_ids": "i1",
    "masked_lm_positions": "i4",
    "masked_lm_ids": "i4",
    "next_sentence_labels": "i1",
}
"""Those of NVIDIA's converter in MLPerf v0.7 to v1.1; later rounds write "i2" for "i4"."""


def shard_name(index: int, count: int) -> str:
    """Path of a training file below the data directory."""
    return f"{TRAINING_FOLDER}/part_{index:05d}_of_{count:05d}.hdf5"


def bytes_per_sample(seq_length: int, max_predictions: int) -> int:
    """Bytes of a sample in a file."""
    return (4 + 1 + 1) * seq_length + (4 + 4) * max_predictions + 1


def write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write one file, uncompressed: (samples, seq_length), (samples, max_predictions) and (samples,)."""
    with h5py.File(path, "w") as file:
        for key, dtype in TYPES.items():
            file.create_dataset(key, data=arrays[key], dtype=dtype)


def shape_of(path: Path) -> tuple[int, int, int]:
    """(samples, seq_length, max_predictions) of a file; FlagPerfError if it is not whole and well-formed."""
    try:
        with h5py.File(path, "r") as file:
            missing = [key for key in TYPES if key not in file]
            if missing:
                raise _malformed(path, f"lacks {', '.join(missing)}")
            shapes = {key: tuple(file[key].shape) for key in TYPES}
            wrong = [key for key in TYPES if file[key].dtype.kind not in "iu"]
    except OSError as error:
        raise _malformed(path, str(error)) from None
    if wrong:
        raise _malformed(path, f"not whole numbers: {', '.join(wrong)}")
    return _consistent(path, shapes)


def _consistent(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, int, int]:
    tokens, predictions = shapes["input_ids"], shapes["masked_lm_ids"]
    wanted = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), tokens)
    wanted |= dict.fromkeys(("masked_lm_positions", "masked_lm_ids"), predictions)
    wanted["next_sentence_labels"] = tokens[:1]
    if shapes != wanted or [len(tokens), len(predictions)] != [2, 2] or not tokens[0] == predictions[0] > 0:
        raise _malformed(path, f"the shapes do not belong together: {dict(shapes)}")
    return tokens[0], tokens[1], predictions[1]


def _malformed(path: Path, why: str) -> FlagPerfError:
    return FlagPerfError(
        f"not a whole HDF5 file of BERT samples: {why}",
        where=str(path),
        remedy="copy the file again, or prepare the data again",
    )


def training_files(data_dir: Path) -> list[Path]:
    """The shards of the training set, sorted by name; FlagPerfError where there is none."""
    return files_in(data_dir / TRAINING_FOLDER, "*.hdf5", model="bert")


def open_shard(path: Path) -> Columns:
    """The arrays of a shard. Uncompressed ones are mapped, so that ranks of a host share what is cached.

    Raises:
        FlagPerfError: the file is missing, is cut off, or lacks a key.
    """
    try:
        with h5py.File(path, "r") as file:
            return {key: _array(path, file[key]) for key in TYPES}
    except (OSError, KeyError, ValueError) as error:
        raise unreadable(path, str(error)) from error


def _array(path: Path, dataset: Any) -> Array:
    offset = dataset.id.get_offset()
    if offset is None or dataset.dtype.hasobject:
        return np.asarray(dataset[()])
    return np.memmap(path, dtype=dataset.dtype, mode="r", offset=offset, shape=dataset.shape)
