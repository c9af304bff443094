"""From arrays to the tensors that the model takes."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.cpm.chunks import ChunkArrays

from .layout import Layout
from .model import CpmInputs


def make_inputs(arrays: ChunkArrays, *, ragged: bool) -> CpmInputs:
    """Only real tokens, sample after sample; `ragged` is how attention sees them."""
    batch, longest = arrays.inputs.shape
    places = np.broadcast_to(np.arange(longest, dtype=np.int32), (batch, longest))
    is_token = places < arrays.lengths[:, None]
    offsets = np.concatenate([[0], np.cumsum(arrays.lengths)])
    needs_places = not ragged and not is_token.all()
    return CpmInputs(
        input_ids=torch.from_numpy(arrays.inputs[is_token]),
        position_ids=torch.from_numpy(places[is_token]),
        layout=Layout(
            batch,
            longest,
            offsets=torch.from_numpy(offsets),
            places=torch.from_numpy(np.flatnonzero(is_token)) if needs_places else None,
            ragged=ragged,
        ),
        labels=torch.from_numpy(arrays.labels),
    )
