"""From arrays to the tensors that the model takes."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.bert.inputs import bert_inputs
from benchmarks.bert.rows import token_rows
from benchmarks.driver.paddle.tensors import host_tensor

from .layout import Layout
from .model import Inputs


def make_inputs(arrays: PretrainingArrays, *, ragged_type: str | None = None, pinned: bool = False) -> Inputs:
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
    return bert_inputs(arrays, rows, layout, tensor)
