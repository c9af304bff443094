"""From arrays to the tensors that the model takes."""

from __future__ import annotations

import torch

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.bert.inputs import bert_inputs
from benchmarks.bert.rows import token_rows
from benchmarks.common.arrays import Array

from .layout import Layout
from .model import Inputs


def make_inputs(arrays: PretrainingArrays, *, ragged: bool) -> Inputs:
    """Lay out a batch: only real tokens if `ragged`, else the full rectangle with its padding hidden."""
    batch, longest = arrays.input_ids.shape
    rows = token_rows(arrays, ragged=ragged)
    if ragged:
        layout = Layout(batch, longest, offsets=torch.from_numpy(rows.begins))
    else:
        layout = Layout(batch, longest, bias=_padding_bias(rows.is_padding))
    return bert_inputs(arrays, rows, layout, torch.from_numpy)


def _padding_bias(is_padding: Array | None) -> torch.Tensor | None:
    """(B, 1, 1, L): -inf at padding; None where there is none."""
    if is_padding is None:
        return None
    hidden = torch.from_numpy(is_padding)
    return torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)[:, None, None]
