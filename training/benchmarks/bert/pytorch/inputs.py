"""From arrays to the tensors that the model takes."""

from __future__ import annotations

import torch

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.bert.inputs import bert_inputs
from benchmarks.common.arrays import Array
from benchmarks.common.pytorch.attention import Ragged, bias_of

from .layout import Layout
from .model import Inputs


def make_inputs(arrays: PretrainingArrays, *, ragged: bool) -> Inputs:
    """Lay out a batch: only real tokens if `ragged`, else the full rectangle with its padding hidden."""
    longest = arrays.input_ids.shape[1]

    def layout_of(begins: Array, is_padding: Array | None) -> Layout:
        if ragged:
            return Layout(len(begins) - 1, longest, ragged=Ragged(torch.from_numpy(begins), longest))
        bias = None if is_padding is None else bias_of(~is_padding[:, None, None])
        return Layout(len(begins) - 1, longest, bias=bias)

    return bert_inputs(arrays, layout_of, torch.from_numpy, ragged=ragged)
