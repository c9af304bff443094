"""What to train next, of all that is known: a network, the weights that it begins with, and hyper-parameters."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from msgspec import structs

from benchmarks.search.architecture import Architecture, ArchitectureError
from benchmarks.search.choice import Candidate, Tried, best_candidate
from benchmarks.search.description import description_of
from benchmarks.search.hyperparameters import Space, trained
from benchmarks.search.morphism import Edit
from benchmarks.search.protocol import Hyperparameters
from benchmarks.search.tuning import TUNED_FROM, Outcome, tuned
from utils.errors import FlagPerfError


class ExhaustedError(FlagPerfError):
    """No edit makes a network that is new and within the limits."""


class Evaluated(NamedTuple):
    """A network that was proposed. trial: None before it was handed out; accuracy: None before it has ended."""

    trial: int | None
    architecture: Architecture
    accuracy: float | None
    hyperparameters: Hyperparameters
    tuned: bool


class Proposal(NamedTuple):
    """A network that `edits` make of that of the trial `parent`; without one, of the start, with fresh weights.

    tuned: whether its hyper-parameters were searched for; else they are its parent's.
    """

    parent: int | None
    edits: tuple[Edit, ...]
    architecture: Architecture
    hyperparameters: Hyperparameters
    tuned: bool


def propose(history: Sequence[Evaluated], random: Random, round_number: int, space: Space) -> Proposal:
    """What to train next; of the same history and random state always the same.

    Args:
        history: all that was proposed, also what waits or is being trained: none of it is proposed again.
        round_number: of the worker that is to train it, from 1.

    Raises:
        ExhaustedError: nothing new can be had.
    """
    ended = [each for each in history if _is_parent(each, space)]
    if not ended:
        return _first(history, random, space)
    candidate = _candidate(ended, history, random, space)
    parent = ended[candidate.parent]
    is_tuned = round_number >= TUNED_FROM
    point = parent.hyperparameters
    if is_tuned:
        outcomes = [Outcome(each.hyperparameters, each.accuracy) for each in history if each.tuned]
        point = tuned(outcomes, point, space.batch_sizes, random)
    point = _within(point, candidate.architecture, space)
    return Proposal(parent.trial, candidate.edits, candidate.architecture, point, is_tuned)


def _is_parent(each: Evaluated, space: Space) -> bool:
    """Whether it was trained, and is not so large that this search cannot have made it."""
    has_ended = each.trial is not None and each.accuracy is not None and 0 <= each.accuracy <= 1
    return has_ended and len(each.architecture.layers) <= space.limits.layers


def _within(point: Hyperparameters, architecture: Architecture, space: Space) -> Hyperparameters:
    """With the largest kernel, up to that of `point`, with which the network is within the limits: with 3 it is."""
    try:
        fits = trained(architecture, point).parameters <= space.most_parameters
    except ArchitectureError:
        fits = False
    smaller = structs.replace(point, kernel=max(3, point.kernel - 2))
    return point if fits or point.kernel == 3 else _within(smaller, architecture, space)


def _first(history: Sequence[Evaluated], random: Random, space: Space) -> Proposal:
    """The start, or what edits make of it, before there is a parent to learn from."""
    candidate = Candidate(0, (), space.start)
    if description_of(space.start) in {description_of(each.architecture) for each in history}:
        point = Evaluated(0, space.start, 0.0, _first_point(space), tuned=False)
        candidate = _candidate([point], history, random, space)
    return Proposal(None, candidate.edits, candidate.architecture, _first_point(space), tuned=False)


def _first_point(space: Space) -> Hyperparameters:
    return Hyperparameters(dropout=0.0, kernel=3, batch_size=space.batch_sizes[0])


def _candidate(
    ended: Sequence[Evaluated], history: Sequence[Evaluated], random: Random, space: Space
) -> Candidate:
    tried = [Tried(each.architecture, each.accuracy or 0.0) for each in ended]
    candidate = best_candidate(tried, [each.architecture for each in history], random, space.limits)
    if candidate is None:
        remedy = "raise most_parameters, or end the search here"
        raise ExhaustedError("no edit makes a network that is new and within the limits", remedy=remedy)
    return candidate
