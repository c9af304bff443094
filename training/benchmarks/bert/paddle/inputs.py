"""From arrays to the tensors that the model takes."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.bert.inputs import bert_inputs
from benchmarks.common.arrays import Array
from benchmarks.driver.paddle.tensors import host_tensor

from .layout import Layout
from .model import Inputs


def make_inputs(arrays: PretrainingArrays, *, ragged_type: str | None = None, pinned: bool = False) -> Inputs:
    """Lay out a batch in the host's memory: only real tokens, to be attended to in `ragged_type`, where one is
    given, else the full rectangle with its padding hidden.
    """
    tensor = partial(host_tensor, pinned=pinned)
    longest = arrays.input_ids.shape[1]

    def layout_of(begins: Array, is_padding: Array | None) -> Layout:
        if ragged_type is not None:
            offsets = tensor(begins.astype(np.int32))
            return Layout(len(begins) - 1, longest, offsets=offsets, ragged_type=ragged_type)
        if is_padding is None:
            return Layout(len(begins) - 1, longest)
        bias = np.where(is_padding, -np.inf, 0.0).astype(np.float32)[:, None, None]
        return Layout(len(begins) - 1, longest, bias=tensor(bias))

    return bert_inputs(arrays, layout_of, tensor, ragged=ragged_type is not None)
