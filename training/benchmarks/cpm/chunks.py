"""CPM's samples on disk: chunks of at most 201 tokens, as `benchmarks.cpm.prepare` writes them.

    train/chunks_<i>_of_<n>.npy    valid/chunks_<i>_of_<n>.npy

Each file is an array (samples, 201) of int32: the token ids of a chunk and then -1. Every chunk has at least two
tokens, so at least one label.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.common.arrays import Array
from benchmarks.common.sample_files import SampleFiles, files_in, unreadable

TRAINING_FOLDER = "train"
EVALUATION_FOLDER = "valid"
PADDING = -1
COLUMN = "chunks"  # the one array of a file


def chunk_files(folder: Path) -> SampleFiles:
    """The files of a training or evaluation set; FlagPerfError where there is none."""
    return SampleFiles(files_in(folder, "*.npy", model="cpm"), lambda path: {COLUMN: open_chunks(path)})


def open_chunks(path: Path) -> Array:
    """The chunks (samples, length) of a file, mapped: ranks of a host share what is cached.

    Raises:
        FlagPerfError: the file is missing, cut off or not of this form.
    """
    try:
        chunks: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise unreadable(path, str(error)) from error
    if chunks.ndim != 2 or chunks.dtype != np.int32:
        raise unreadable(path, f"it holds {chunks.dtype} of shape {chunks.shape}")
    return chunks


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
