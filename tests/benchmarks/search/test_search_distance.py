"""The distance of networks: a metric, and as pairs come to by hand."""

from __future__ import annotations

from functools import reduce
from itertools import combinations, permutations
from random import Random

import numpy as np
import pytest

from benchmarks.search.architecture import Architecture, Images
from benchmarks.search.description import SkipConnection, Step, description_of
from benchmarks.search.distance import (
    _as_array,
    _skip_distances,
    _skips_distance,
    _step_distance,
    _steps_distances,
    distance,
    distances,
)
from benchmarks.search.layers import MOST_CHANNELS
from benchmarks.search.morphism import Deepen, Edit, Skip, Widen, apply, neighbours
from benchmarks.search.resnet import resnet50, small_resnet

SMALL = small_resnet(Images(8, 8, 1), classes=10)
RESNET50 = resnet50(Images(32, 32, 3), classes=10)


def _edited(*edits: Edit, start: Architecture = SMALL) -> Architecture:
    return reduce(apply, edits, start)


def _family(count: int, seed: int) -> list[Architecture]:
    random = Random(seed)
    family = [SMALL]
    while len(family) < count:
        family += [each.architecture for each in neighbours(random.choice(family), random)]
    return family[:count]


def test_what_is_compared() -> None:
    description = description_of(SMALL)
    first, second = [(8, 3, 1), (8, 1, 1), (8, 3, 1), (32, 1, 1)], [(16, 1, 2), (16, 3, 1), (64, 1, 1)]
    assert description.steps == (*(Step("conv", each) for each in first + second), Step("dense", (10,)))
    assert description.skips == (SkipConnection(1, 3), SkipConnection(4, 3))


HAND_MADE = {
    # of 3, 1, 1: the same
    "nothing": ((), 0.0),
    # a convolution more; the skip over it is 4 long, from 1: |4 - 3| / (1 + 4); the second begins at 5: 1 / (5 + 3)
    "deepen in the first block": ((Deepen(6),), 1 + 1 / 5 + 1 / 8),
    # both skips are where they were, the dense layer is not
    "deepen at the end": ((Deepen(27),), 1.0),
    # 8 -> 16 channels of one convolution: the mean of 1/2, 0 and 0
    "widen one": ((Widen(4),), 1 / 6),
    # its shortcut is widened too, and is not on the main chain
    "widen with what is added": ((Widen(10),), 1 / 6),
    # a skip that had no partner: 1
    "skip": ((Skip(3, 5),), 1.0),
    "skip with a convolution": ((Skip(3, 17),), 1.0),
    "two edits": ((Widen(4), Skip(3, 5)), 1 + 1 / 6),
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_pairs_by_hand(name: str) -> None:
    edits, expected = HAND_MADE[name]
    assert distance(SMALL, _edited(*edits)) == pytest.approx(expected, abs=1e-12)
    assert distance(_edited(*edits), SMALL) == pytest.approx(expected, abs=1e-12)


CONV, WIDE = Step("conv", (4, 3, 1)), Step("conv", (8, 1, 2))
POOL, DENSE = Step("max_pool", (3, 2)), Step("dense", (5,))


def test_a_step_by_hand() -> None:
    assert _step_distance(CONV, POOL) == _step_distance(POOL, DENSE) == 1
    assert _step_distance(CONV, WIDE) == pytest.approx((4 / 8 + 2 / 3 + 1 / 2) / 3)
    assert _step_distance(DENSE, Step("dense", (10,))) == 0.5
    assert _step_distance(POOL, Step("max_pool", (3, 4))) == 0.25


def test_steps_by_hand() -> None:
    others = {
        (CONV, POOL, DENSE): 0,
        (CONV, DENSE): 1,
        (): 3,
        (DENSE, CONV): 3,
        (POOL, CONV, CONV, DENSE, DENSE): 3,
        (WIDE, POOL, DENSE): 5 / 9,
    }
    assert _steps_distances([CONV, POOL, DENSE], list(others)).tolist() == pytest.approx(
        list(others.values())
    )
    assert _steps_distances([], list(others)).tolist() == [len(other) for other in others]
    assert _steps_distances([CONV], []).tolist() == []


def _drawn(random: Random) -> tuple[SkipConnection, ...]:
    count = random.randrange(5)
    return tuple(sorted(SkipConnection(random.randrange(5), random.randrange(5)) for _ in range(count)))


def test_skips_are_matched_at_the_least_cost() -> None:
    random = Random(0)
    for _ in range(200):
        one, other = sorted((_drawn(random), _drawn(random)), key=len)
        costs = _skip_distances(_as_array(one), _as_array(other))
        orders = permutations(range(len(other)), len(one))
        least = min(sum(costs[row, column] for row, column in enumerate(order)) for order in orders)
        assert _skips_distance(one, other) == pytest.approx(least + len(other) - len(one))


def test_it_is_a_metric() -> None:
    family = [description_of(each) for each in _family(24, seed=1)]
    apart = np.array([distances(one, family) for one in family])
    assert np.diag(apart).tolist() == [0.0] * len(family)
    np.testing.assert_allclose(apart, apart.T, rtol=0, atol=1e-12)
    assert np.all(apart[:, None, :] <= apart[:, :, None] + apart[None, :, :].transpose(0, 2, 1) + 1e-9)
    for (i, one), (j, other) in combinations(enumerate(family), 2):
        assert (apart[i, j] < 1e-5) == (one == other)


def test_the_smallest_change_is_no_duplicate() -> None:
    """Of what an edit can make: one convolution twice as wide, wherever it stands."""
    for layer in (each.id for each in RESNET50.layers if each.kind == "conv"):
        if layer != RESNET50.layers[-5].id:
            assert distance(RESNET50, _edited(Widen(layer), start=RESNET50)) > 0.1
    assert _step_distance(Step("dense", (MOST_CHANNELS,)), Step("dense", (MOST_CHANNELS - 1,))) > 1e-5
