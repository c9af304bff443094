"""How far two networks are apart: an edit distance of their layers, and of the skip connections between them.

Jin, Song and Hu 2019, Auto-Keras (arXiv:1806.10282). It is a metric: zero for equal ones, symmetric, no way round is
shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from benchmarks.search.architecture import Architecture
from benchmarks.search.description import Description, SkipConnection, Step, description_of

Floats = NDArray[np.float64]


def distance(one: Architecture, other: Architecture) -> float:
    """How far two networks are apart: inserted or removed steps, parts of changed ones, and the same of skips."""
    return float(distances(description_of(one), [description_of(other)])[0])


def distances(one: Description, others: Sequence[Description]) -> Floats:
    """(N,) distances of one network to N others."""
    skips = [_skips_distance(*sorted((one.skips, other.skips))) for other in others]
    return _steps_distances(one.steps, [other.steps for other in others]) + np.array(skips, dtype=np.float64)


def _step_distance(one: Step, other: Step) -> float:
    """The mean of what their numbers differ by, each as a part of the larger; 1 where they are of two kinds."""
    if one.kind != other.kind:
        return 1.0
    pairs = list(zip(one.numbers, other.numbers, strict=True))
    return sum(abs(a - b) / max(a, b) for a, b in pairs) / len(pairs)


def _steps_distances(one: Sequence[Step], others: Sequence[Sequence[Step]]) -> Floats:
    """Edit distances, all at once: a row of the usual table (Wagner and Fischer 1974) for all others together.

    Of the table's values their column is left out, so that to insert a step costs nothing, and to remove one 1.
    """
    kinds = {step: place for place, step in enumerate({*one, *(step for other in others for step in other)})}
    lengths = np.array([len(other) for other in others], dtype=np.intp)
    steps = np.zeros((max(lengths, default=0), len(others)), dtype=np.intp)
    for place, other in enumerate(others):
        steps[: len(other), place] = [kinds[step] for step in other]
    changes = {step: np.array([_step_distance(step, other) for other in kinds]) - 1 for step in set(one)}
    best = np.zeros((len(steps) + 1, len(others)))
    for place, step in enumerate(one, 1):
        best[1:] = np.minimum(best[:-1] + changes[step][steps], best[1:] + 1)
        best[0] = place
        np.minimum.accumulate(best, axis=0, out=best)
    return np.asarray(best[lengths, np.arange(len(others))] + lengths)


@lru_cache(maxsize=2**18)
def _skips_distance(one: tuple[SkipConnection, ...], other: tuple[SkipConnection, ...]) -> float:
    """That of the best pairs (Kuhn 1955); one without a partner counts 1."""
    apart = _skip_distances(_as_array(one), _as_array(other))
    return float(apart[linear_sum_assignment(apart)].sum()) + abs(len(one) - len(other))


def _skip_distances(one: Floats, other: Floats) -> Floats:
    """(M, N) of skips (M, 2) and (N, 2): what starts and lengths differ by, as a part of the larger ones."""
    smaller = np.minimum(one[:, None, 0], other[:, 0]) + np.minimum(one[:, None, 1], other[:, 1])
    both = one.sum(axis=1)[:, None] + other.sum(axis=1)
    return np.asarray((both - 2 * smaller) / np.maximum(both - smaller, 1))


@lru_cache(maxsize=2048)
def _as_array(skips: tuple[SkipConnection, ...]) -> Floats:
    return np.array(skips, dtype=np.float64).reshape(-1, 2)
