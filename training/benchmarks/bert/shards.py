"""Read BERT's pre-training samples from HDF5 shards in the layout of MLPerf's Wikipedia set.

A shard holds, for its n samples of length S with at most P predictions each:

    input_ids (n, S)  input_mask (n, S)  segment_ids (n, S)      padded at the end with 0
    masked_lm_positions (n, P)  masked_lm_ids (n, P)             padded at the end with position 0
    next_sentence_labels (n,) or (n, 1)

Position 0 is [CLS], which is never predicted, so that a position of 0 means "none".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from benchmarks.driver.sampling import SHUFFLED_TOGETHER, Samples
from utils.errors import FlagPerfError

TRAINING_FOLDER = "2048_shards_uncompressed"
EVALUATION_FILE = "eval_set_uncompressed/part_eval_10k.hdf5"
KEYS = (
    "input_ids",
    "input_mask",
    "segment_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "next_sentence_labels",
)

Array = NDArray[Any]
Shard = dict[str, Array]


def training_files(data_dir: Path) -> list[Path]:
    """The shards of the training set, sorted by name.

    Raises:
        FlagPerfError: there is none.
    """
    files = sorted((data_dir / TRAINING_FOLDER).glob("*.hdf5"))
    if not files:
        raise FlagPerfError(
            "no *.hdf5 file",
            where=str(data_dir / TRAINING_FOLDER),
            remedy="prepare the data, or give the data directory of the case its right path",
        )
    return files


def open_shard(path: Path) -> Shard:
    """The arrays of a shard. Uncompressed ones are mapped, so that ranks of a host share what is cached.

    Raises:
        FlagPerfError: the file is missing, is cut off, or lacks a key.
    """
    try:
        with h5py.File(path, "r") as file:
            return {key: _array(path, file[key]) for key in KEYS}
    except (OSError, KeyError, ValueError) as error:
        raise FlagPerfError(
            f"cannot read this shard: {error}", where=str(path), remedy="copy or prepare the file again"
        ) from error


def _array(path: Path, dataset: Any) -> Array:
    offset = dataset.id.get_offset()
    if offset is None or dataset.dtype.hasobject:
        return np.asarray(dataset[()])
    return np.memmap(path, dtype=dataset.dtype, mode="r", offset=offset, shape=dataset.shape)


@dataclass
class ShardFiles:
    """Rows of many shards; the `keep` shards used last stay open."""

    files: Sequence[Path]
    keep: int = SHUFFLED_TOGETHER

    def __post_init__(self) -> None:
        self._open: dict[int, Shard] = {}

    def rows(self, shard: int) -> int:
        """Number of samples in a shard."""
        return len(self._shard(shard)["input_ids"])

    def read(self, samples: Samples) -> Shard:
        """The arrays of `samples`, in their order, each (len(samples), ...)."""
        groups = [(shard, np.flatnonzero(samples.shards == shard)) for shard in np.unique(samples.shards)]
        if len(groups) == 1:
            shard = self._shard(int(groups[0][0]))
            return {key: np.asarray(array[samples.rows]) for key, array in shard.items()}
        read: Shard = {}
        for number, places in groups:
            for key, array in self._shard(int(number)).items():
                if key not in read:
                    read[key] = np.empty((len(samples), *array.shape[1:]), dtype=array.dtype)
                read[key][places] = array[samples.rows[places]]
        return read

    def _shard(self, number: int) -> Shard:
        shard = self._open.pop(number, None)
        if shard is None:
            shard = open_shard(self.files[number])
            while len(self._open) >= self.keep:
                self._open.pop(next(iter(self._open)))
        self._open[number] = shard  # now the one used last
        return shard
