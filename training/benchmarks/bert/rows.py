"""How a batch's tokens lie in memory, before they are any framework's tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.common.arrays import Array


@dataclass(frozen=True)
class TokenRows:
    """B samples as T rows, one a token: sample after sample, or a full rectangle of B x L with its padding.

    Attributes:
        input_ids, segment_ids, position_ids: (T,) int32.
        begins: (B + 1,) int64 the row at which each sample begins, and T.
        is_padding: (B, L) bool of a rectangle that has padding, else None.
        looked_at: (B * Q,) int64 rows of the tokens that the heads look at: of each sample [CLS] first, then
            its predictions, then [CLS] again as filling.
    """

    input_ids: Array
    segment_ids: Array
    position_ids: Array
    begins: Array
    is_padding: Array | None
    looked_at: Array


def token_rows(arrays: PretrainingArrays, *, ragged: bool) -> TokenRows:
    """Lay out a batch: only real tokens if `ragged`, else the full rectangle."""
    batch, longest = arrays.input_ids.shape
    lengths = arrays.lengths.astype(np.int64)
    is_token = np.arange(longest) < lengths[:, None]
    has_padding = not ragged and not is_token.all()
    if ragged:
        chosen, begins = is_token, np.concatenate([[0], np.cumsum(lengths)])
    else:
        chosen, begins = np.ones_like(is_token), np.arange(batch + 1) * longest
    places = np.broadcast_to(np.arange(longest, dtype=np.int32), (batch, longest))
    return TokenRows(
        input_ids=arrays.input_ids[chosen],
        segment_ids=arrays.segment_ids[chosen],
        position_ids=places[chosen],
        begins=begins,
        is_padding=~is_token if has_padding else None,
        looked_at=(begins[:-1, None] + arrays.positions).reshape(-1),
    )
