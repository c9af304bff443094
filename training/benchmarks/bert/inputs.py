"""What the models take: a batch as the tensors of either framework."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.bert.rows import TokenRows
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
    arrays: PretrainingArrays, rows: TokenRows, layout: Layout, tensor: Callable[[Array], Tensor]
) -> BertInputs[Tensor, Layout]:
    """`arrays`, laid out as `rows` and `layout` say, with each array as a `tensor`."""
    return BertInputs(
        input_ids=tensor(rows.input_ids),
        segment_ids=tensor(rows.segment_ids),
        position_ids=tensor(rows.position_ids),
        layout=layout,
        queries=arrays.positions.shape[1],
        looked_at=tensor(rows.looked_at),
        label_places=tensor(arrays.label_places),
        labels=tensor(arrays.labels),
        next_sentence_labels=tensor(arrays.next_sentence_labels),
    )
