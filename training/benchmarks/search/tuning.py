"""Hyper-parameters by Optuna's tree-structured Parzen estimator (Bergstra et al. 2011; Akiba et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import optuna
from msgspec import structs
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from benchmarks.search.protocol import Hyperparameters

TUNED_FROM = 4  # the round, from 1
LARGEST_DROPOUT = 0.2
KERNELS = (3, 5, 7)
RANDOM_FIRST = 5  # points drawn evenly before there is an estimate: a search has tens of trials, not hundreds


class Outcome(NamedTuple):
    """Hyper-parameters, and the accuracy that they came to; None where that is not known yet."""

    hyperparameters: Hyperparameters
    accuracy: float | None


def tuned(
    outcomes: Sequence[Outcome], parent: Hyperparameters, batch_sizes: Sequence[int], random: Random
) -> Hyperparameters:
    """What to try next, by what came of all that was asked here before; at first the parent's own."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = _space(batch_sizes)
    sampler = optuna.samplers.TPESampler(n_startup_trials=RANDOM_FIRST, seed=random.randrange(2**32))
    study = optuna.create_study(sampler=sampler, direction="maximize")
    study.add_trials(
        optuna.trial.create_trial(value=accuracy, params=structs.asdict(point), distributions=space)
        for point, accuracy in outcomes
        if accuracy is not None and _is_within(point, batch_sizes)
    )
    if not outcomes and _is_within(parent, batch_sizes):
        study.enqueue_trial(structs.asdict(parent))
    return Hyperparameters(**study.ask(space).params)


def _space(batch_sizes: Sequence[int]) -> dict[str, BaseDistribution]:
    """By the names that the hyper-parameters have."""
    return {
        "dropout": FloatDistribution(0.0, LARGEST_DROPOUT),
        "kernel": CategoricalDistribution(KERNELS),
        "batch_size": CategoricalDistribution(tuple(batch_sizes)),
    }


def _is_within(point: Hyperparameters, batch_sizes: Sequence[int]) -> bool:
    """Whether Optuna would take it: trials before a change of the configuration may have had others."""
    return point.dropout <= LARGEST_DROPOUT and point.batch_size in batch_sizes
