"""A batch of BERT pre-training samples as arrays: cut to its longest, with the places of its labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.common.arrays import Array
from benchmarks.common.sample_files import Columns


@dataclass(frozen=True)
class PretrainingArrays:
    """B samples, the longest of L tokens, the most of Q - 1 predictions, M predictions in all.

    Attributes:
        input_ids: (B, L) int32 token ids, 0 in padding.
        segment_ids: (B, L) int32, 0 or 1.
        lengths: (B,) int32 tokens that are not padding.
        positions: (B, Q) int32, [CLS]'s position 0 and then the predictions', filled up with 0: all that
            the heads look at.
        label_places: (M,) int64 index of each prediction in `positions` read as one row.
        labels: (M,) int64 the tokens to predict.
        next_sentence_labels: (B,) int64, 0: the second part follows the first, 1: it is from elsewhere.
    """

    input_ids: Array
    segment_ids: Array
    lengths: Array
    positions: Array
    label_places: Array
    labels: Array
    next_sentence_labels: Array


def pretraining_arrays(rows: Columns) -> PretrainingArrays:
    """Cut the padding that no sample of the batch needs and find the labels."""
    lengths = rows["input_mask"].sum(axis=1, dtype=np.int32)
    longest = int(lengths.max())
    masked = rows["masked_lm_positions"]
    is_label = masked > 0
    most = int(is_label.sum(axis=1).max())
    batch = len(lengths)
    positions = np.zeros((batch, most + 1), dtype=np.int32)
    positions[:, 1:] = masked[:, :most]
    sample, prediction = np.nonzero(is_label[:, :most])
    return PretrainingArrays(
        input_ids=rows["input_ids"][:, :longest].astype(np.int32),
        segment_ids=rows["segment_ids"][:, :longest].astype(np.int32),
        lengths=lengths,
        positions=positions,
        label_places=(sample * (most + 1) + prediction + 1).astype(np.int64),
        labels=rows["masked_lm_ids"][sample, prediction].astype(np.int64),
        next_sentence_labels=rows["next_sentence_labels"].reshape(batch).astype(np.int64),
    )
