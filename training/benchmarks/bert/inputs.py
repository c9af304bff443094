"""What the models take: a batch laid out in memory, as the tensors of either framework."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.common.arrays import Array

Tensor = TypeVar("Tensor")
Layout = TypeVar("Layout")


@dataclass(frozen=True)
class BertInputs(Generic[Tensor, Layout]):
    """A batch of B samples with T tokens, Q places a sample at which the heads look, M predictions.

    Attributes:
        input_ids, segment_ids, position_ids: (T,) int32.
        layout: which tokens belong together.
        queries: Q.
        looked_at: (B * Q,) int64 rows of the tokens: of each sample [CLS] first, then its predictions, then
            [CLS] again as filling.
        label_places: (M,) int64 rows of `looked_at` that are predictions.
        labels: (M,) int64 the tokens to predict.
        next_sentence_labels: (B,) int64, 1 where the second part is from elsewhere.
    """

    input_ids: Tensor
    segment_ids: Tensor
    position_ids: Tensor
    layout: Layout
    queries: int
    looked_at: Tensor
    label_places: Tensor
    labels: Tensor
    next_sentence_labels: Tensor


def bert_inputs(
    arrays: PretrainingArrays,
    layout_of: Callable[[Array, Array | None], Layout],
    tensor: Callable[[Array], Tensor],
    *,
    ragged: bool,
) -> BertInputs[Tensor, Layout]:
    """Lay out a batch: only real tokens, sample after sample, if `ragged`, else a full rectangle of B x L.

    Args:
        arrays: the batch.
        layout_of: makes the layout of the row at which each sample begins and their number, (B + 1,) int64, and of
            (B, L) bool, what is padding in a rectangle that has some.
        tensor: makes a tensor of an array.
        ragged: as above.
    """
    batch, longest = arrays.input_ids.shape
    is_token = np.arange(longest) < arrays.lengths[:, None]
    rows = is_token if ragged else np.ones_like(is_token)
    begins = np.append(0, np.cumsum(rows.sum(axis=1)))
    places = np.broadcast_to(np.arange(longest, dtype=np.int32), (batch, longest))
    return BertInputs(
        input_ids=tensor(arrays.input_ids[rows]),
        segment_ids=tensor(arrays.segment_ids[rows]),
        position_ids=tensor(places[rows]),
        layout=layout_of(begins, None if rows is is_token or is_token.all() else ~is_token),
        queries=arrays.positions.shape[1],
        looked_at=tensor((begins[:-1, None] + arrays.positions).reshape(-1)),
        label_places=tensor(arrays.label_places),
        labels=tensor(arrays.labels),
        next_sentence_labels=tensor(arrays.next_sentence_labels),
    )
