"""From arrays to the tensors that the model takes."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.common.arrays import within
from benchmarks.common.pytorch.attention import Ragged, Rectangle, offsets_of
from benchmarks.cpm.chunks import ChunkArrays

from .layout import Layout
from .model import CpmInputs


def make_inputs(arrays: ChunkArrays, *, ragged: bool) -> CpmInputs:
    """Only real tokens, sample after sample; `ragged` is how attention sees them."""
    longest = arrays.inputs.shape[1]
    offsets = offsets_of(arrays.lengths)
    return CpmInputs(
        input_ids=torch.from_numpy(arrays.inputs[np.arange(longest) < arrays.lengths[:, None]]),
        position_ids=torch.from_numpy(within(arrays.lengths).astype(np.int32)),
        layout=Layout(offsets, Ragged(offsets, longest) if ragged else Rectangle.of(arrays.lengths)),
        labels=torch.from_numpy(arrays.labels),
    )
