"""From arrays to the tensors that the model takes."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.bert.rows import token_rows
from benchmarks.driver.paddle.tensors import host_tensor

from .layout import Layout
from .model import BertInputs


def make_inputs(
    arrays: PretrainingArrays, *, ragged_type: str | None = None, pinned: bool = False
) -> BertInputs:
    """Lay out a batch in the host's memory: only real tokens, to be attended to in `ragged_type`, where one is
    given, else the full rectangle with its padding hidden.
    """
    tensor = partial(host_tensor, pinned=pinned)
    batch, longest = arrays.input_ids.shape
    rows = token_rows(arrays, ragged=ragged_type is not None)
    if ragged_type is not None:
        offsets = tensor(rows.begins.astype(np.int32))
        layout = Layout(batch, longest, offsets=offsets, ragged_type=ragged_type)
    else:
        hidden = rows.is_padding
        bias = None if hidden is None else np.where(hidden, -np.inf, 0.0).astype(np.float32)[:, None, None]
        layout = Layout(batch, longest, bias=None if bias is None else tensor(bias))
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
