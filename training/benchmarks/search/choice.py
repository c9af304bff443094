"""Which network to try next: what a Gaussian process expects of those that annealing leads to.

Jin, Song and Hu 2019, Auto-Keras (arXiv:1806.10282), as AIPerf uses it: each network is worth the upper confidence
bound of its accuracy; from those tried before, simulated annealing goes on to neighbours of neighbours.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import count
from random import Random
from typing import NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from benchmarks.search.architecture import Architecture
from benchmarks.search.description import Description, description_of
from benchmarks.search.distance import Floats, distances
from benchmarks.search.morphism import Edit, Limits, neighbours

DEVIATIONS = 2.576  # of a normal distribution 99 % lie within so many
MOST_LANDMARKS = 64
HOTTEST, COLDEST, COOLING = 1.0, 1e-4, 0.5


class Tried(NamedTuple):
    """A network and the accuracy, from 0 to 1, that it came to."""

    architecture: Architecture
    accuracy: float


class Candidate(NamedTuple):
    """A network that `edits` make of the one at the place `parent` of those tried."""

    parent: int
    edits: tuple[Edit, ...]
    architecture: Architecture


class Surrogate(Protocol):
    """What stands for a training."""

    def worth(self, networks: Sequence[Description]) -> Floats:
        """(M,) of M networks."""
        ...


class UpperConfidenceBound:
    """Mean and 2.576 standard deviations of a Gaussian process.

    An edit distance alone is no kernel of one, for not every matrix of them is positive definite. A network is
    therefore placed by its distances to some of those tried (Bourgain 1985): so many coordinates, none of which differs
    by more than the two networks do.
    """

    def __init__(self, tried: Sequence[Description], accuracies: Sequence[float]) -> None:
        self.landmarks = tried[:: -(-len(tried) // MOST_LANDMARKS)]
        kernel = RBF(1.0, (0.1, 100.0)) + WhiteKernel(1e-2, (1e-4, 1.0))
        self.process = GaussianProcessRegressor(kernel, normalize_y=True)
        apart = [distances(landmark, tried) for landmark in self.landmarks]
        with warnings.catch_warnings():  # few trials say little of noise and lengths: the bounds decide then
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.process.fit(self._places(np.transpose(apart)), np.array(accuracies))

    def worth(self, networks: Sequence[Description]) -> Floats:
        mean, deviation = self._foretold(networks)
        return mean + DEVIATIONS * deviation

    def expected(self, networks: Sequence[Description]) -> Floats:
        """(M,) accuracies, without what is uncertain."""
        return self._foretold(networks)[0]

    def _foretold(self, networks: Sequence[Description]) -> tuple[Floats, Floats]:
        apart = [distances(network, self.landmarks) for network in networks]
        mean, deviation = self.process.predict(self._places(np.array(apart)), return_std=True)
        return mean, deviation

    def _places(self, apart: Floats) -> Floats:
        """(M, landmarks) coordinates: as far from each other as the networks are, on an average of the landmarks."""
        return apart / math.sqrt(len(self.landmarks))


def best_candidate(
    tried: Sequence[Tried],
    waiting: Sequence[Architecture],
    random: Random,
    limits: Limits = Limits(),  # noqa: B008
) -> Candidate | None:
    """The neighbour of neighbours of what was tried that is worth most; None where all are duplicates.

    Args:
        waiting: networks that are to be tried, or are being: no duplicate of them is wanted either.
    """
    descriptions = [description_of(each.architecture) for each in tried]
    surrogate = UpperConfidenceBound(descriptions, [each.accuracy for each in tried])
    return annealed(tried, waiting, surrogate, random, limits)


def annealed(
    tried: Sequence[Tried],
    waiting: Sequence[Architecture],
    surrogate: Surrogate,
    random: Random,
    limits: Limits = Limits(),  # noqa: B008
) -> Candidate | None:
    """As `best_candidate`, by any surrogate.

    What is worth most is gone on from; what is worth less than the best so far by x only with the probability
    exp(-x / temperature), which is halved each time.
    """
    order = count()  # among equally good ones the first is gone on from first
    queue = [
        (-each.accuracy, next(order), Candidate(place, (), each.architecture))
        for place, each in enumerate(tried)
    ]
    heapify(queue)
    compared = {description_of(each) for each in (*(each.architecture for each in tried), *waiting)}
    best, most, temperature = None, -math.inf, HOTTEST
    while queue and temperature > COLDEST:
        worth, _, start = heappop(queue)
        if random.random() <= math.exp(min(0.0, (-worth - most) / temperature)):
            for candidate, value in _valued(_new_ones(start, compared, random, limits), surrogate):
                heappush(queue, (-value, next(order), candidate))
                if value > most:
                    best, most = candidate, value
        temperature *= COOLING
    return best


def _new_ones(
    start: Candidate, compared: set[Description], random: Random, limits: Limits
) -> dict[Description, Candidate]:
    """Neighbours that are no duplicates of what was compared, to which they are added.

    Networks at a distance of zero are the same. No two others are nearer than 1e-5: an edit doubles a width, or adds.
    """
    made = {}
    for edit, architecture in neighbours(start.architecture, random, limits):
        description = description_of(architecture)
        if description not in compared:
            compared.add(description)
            made[description] = Candidate(start.parent, (*start.edits, edit), architecture)
    return made


def _valued(made: dict[Description, Candidate], surrogate: Surrogate) -> Iterator[tuple[Candidate, float]]:
    if made:
        yield from zip(made.values(), map(float, surrogate.worth(list(made))), strict=True)
