"""CPM's samples on disk: chunks of at most 201 tokens, as `benchmarks.cpm.prepare` writes them.

    train/chunks_<i>_of_<n>.npy    valid/chunks_<i>_of_<n>.npy

Each file is an array (samples, 201) of int32: the token ids of a chunk and then -1. Every chunk has at least two
tokens, so at least one label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.driver.sampling import Samples
from utils.errors import FlagPerfError

TRAINING_FOLDER = "train"
EVALUATION_FOLDER = "valid"
PADDING = -1

Array = NDArray[Any]


def chunk_files(folder: Path) -> list[Path]:
    """The files of a training or evaluation set, sorted by name.

    Raises:
        FlagPerfError: there is none.
    """
    files = sorted(folder.glob("*.npy"))
    if not files:
        raise FlagPerfError(
            "no *.npy file",
            where=str(folder),
            remedy="prepare the data (python3 -m benchmarks.cpm.prepare), or give their right directory",
        )
    return files


def open_chunks(path: Path) -> Array:
    """The chunks (samples, length) of a file, mapped: ranks of a host share what is cached.

    Raises:
        FlagPerfError: the file is missing, cut off or not of this form.
    """
    try:
        chunks: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from error
    if chunks.ndim != 2 or chunks.dtype != np.int32:
        raise _unreadable(path, f"it holds {chunks.dtype} of shape {chunks.shape}")
    return chunks


def _unreadable(path: Path, why: str) -> FlagPerfError:
    return FlagPerfError(
        f"cannot read the chunks of this file: {why}",
        where=str(path),
        remedy="copy the file again, or prepare the data again",
    )


@dataclass
class ChunkFiles:
    """The chunks of many files; a file stays open once it is read."""

    files: Sequence[Path]

    def __post_init__(self) -> None:
        self._open: dict[int, Array] = {}

    def rows(self, number: int) -> int:
        """Number of samples in a file."""
        return len(self._chunks(number))

    def read(self, samples: Samples) -> Array:
        """The chunks of `samples`, in their order: (len(samples), length)."""
        read: Array | None = None
        for number in np.unique(samples.shards):
            chunks, places = self._chunks(int(number)), np.flatnonzero(samples.shards == number)
            if read is None:
                read = np.empty((len(samples), chunks.shape[1]), dtype=np.int32)
            read[places] = chunks[samples.rows[places]]
        return np.empty((0, 1), dtype=np.int32) if read is None else read

    def _chunks(self, number: int) -> Array:
        if number not in self._open:
            self._open[number] = open_chunks(self.files[number])
        return self._open[number]


@dataclass(frozen=True)
class ChunkArrays:
    """A batch of B chunks, cut to its longest: each token but a chunk's last is an input, each but its first a label.

    Attributes:
        inputs: (B, L) int32 token ids, 0 in padding.
        lengths: (B,) int64 inputs of each chunk, at least 1.
        labels: (T,) int64 the token that follows each input, chunk after chunk; T is the sum of `lengths`.
    """

    inputs: Array
    lengths: Array
    labels: Array


def chunk_arrays(chunks: Array) -> ChunkArrays:
    """Divide chunks (B, length), padded with -1, into inputs and labels."""
    is_token = chunks != PADDING
    lengths = is_token.sum(axis=1) - 1
    longest = int(lengths.max(initial=0))
    is_input = np.arange(longest) < lengths[:, None]
    return ChunkArrays(
        inputs=np.where(is_input, chunks[:, :longest], 0),
        lengths=lengths,
        labels=chunks[:, 1:][is_token[:, 1:]].astype(np.int64),
    )
