"""The HDF5 files of MLPerf's Wikipedia set: names, keys, types; written and checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import h5py

from benchmarks.bert.prepare.samples import Array
from utils.errors import FlagPerfError

TRAIN_FOLDER = "2048_shards_uncompressed"  # MLPerf's name, kept whatever the number of shards
EVAL_FILE = "eval_set_uncompressed/part_eval_10k.hdf5"  # likewise
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
    return f"{TRAIN_FOLDER}/part_{index:05d}_of_{count:05d}.hdf5"


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
