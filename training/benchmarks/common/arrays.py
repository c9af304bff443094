"""numpy arrays, and runs of different lengths that stand one after the other in one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def starts(lengths: Array) -> Array:
    """Where each run begins."""
    return np.cumsum(lengths, dtype=np.int64) - lengths


def spans(begins: Array, lengths: Array) -> Array:
    """The indices begin, begin + 1, ... of each run, one run after the other."""
    return np.repeat(begins, lengths) + within(lengths)


def within(lengths: Array) -> Array:
    """0, 1, ... within each run; the length of run i is `lengths[i]`."""
    places: Array = np.arange(int(lengths.sum(dtype=np.int64))) - np.repeat(starts(lengths), lengths)
    return places
