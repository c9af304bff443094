"""From arrays to the tensors that the model takes."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.bert.shards import Array

from .layout import Layout
from .model import BertInputs


def make_inputs(arrays: PretrainingArrays, *, ragged: bool) -> BertInputs:
    """Lay out a batch: only real tokens if `ragged`, else the full rectangle with its padding hidden."""
    batch, longest = arrays.input_ids.shape
    lengths = arrays.lengths.astype(np.int64)
    if ragged:
        is_token = np.arange(longest) < lengths[:, None]
        begins = np.concatenate([[0], np.cumsum(lengths)])
        layout = Layout(batch, longest, offsets=torch.from_numpy(begins))
    else:
        is_token = np.ones((batch, longest), dtype=bool)
        begins = np.arange(batch + 1) * longest
        layout = Layout(batch, longest, bias=_padding_bias(lengths, longest))
    places = np.broadcast_to(np.arange(longest, dtype=np.int32), (batch, longest))
    return BertInputs(
        input_ids=torch.from_numpy(arrays.input_ids[is_token]),
        segment_ids=torch.from_numpy(arrays.segment_ids[is_token]),
        position_ids=torch.from_numpy(places[is_token]),
        layout=layout,
        queries=arrays.positions.shape[1],
        looked_at=torch.from_numpy((begins[:-1, None] + arrays.positions).reshape(-1)),
        label_places=torch.from_numpy(arrays.label_places),
        labels=torch.from_numpy(arrays.labels),
        next_sentence_labels=torch.from_numpy(arrays.next_sentence_labels),
    )


def _padding_bias(lengths: Array, longest: int) -> torch.Tensor | None:
    """(B, 1, 1, L): -inf at padding; None where there is none."""
    if lengths.min() == longest:
        return None
    is_padding = torch.from_numpy(np.arange(longest) >= lengths[:, None])
    return torch.zeros(is_padding.shape).masked_fill(is_padding, -torch.inf)[:, None, None]
