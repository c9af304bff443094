"""What stands in `result.json` of a search, beside its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

MOST_POINTS, MOST_REMARKS = 10_000, 10


@dataclass(frozen=True)
class Point:
    """A moment of a search: seconds since its first trial began, the score until then (operations/s), and the best
    accuracy."""

    seconds: float
    score: float
    accuracy: float


@dataclass(frozen=True)
class BestTrial:
    """The trial with the best accuracy. ancestors: how many architectures were edited before its own."""

    trial: int
    accuracy: float
    layers: int
    parameters: int
    forward_operations: int
    training_operations: int
    ancestors: int


@dataclass(frozen=True)
class SearchResult:
    """workers: that ever joined; ranks: theirs by the plan, a chip each.

    training_samples, validation_samples: of an epoch.
    starts: of its controller. is_trial_run: it was configured for less than the rules ask, and is not comparable.
    broken_rules: those that it does not meet. series: the course of its score. best: None before the first epoch.
    """

    workers: int
    ranks: int
    precision: str
    data_digest: str
    training_samples: int
    validation_samples: int
    search_seconds: float
    starts: int
    is_trial_run: bool
    broken_rules: Annotated[tuple[str, ...], Field(max_length=MOST_REMARKS)]
    series: Annotated[tuple[Point, ...], Field(max_length=MOST_POINTS)]
    best: BestTrial | None
