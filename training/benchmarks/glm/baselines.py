"""Answers that need no understanding of the query: what a model has to beat.

All are computed from the data alone. Where several candidates are equally good, the first counts: the one that the
passage names first.
"""

from __future__ import annotations

import numpy as np

from benchmarks.common.arrays import Array, starts
from benchmarks.glm.clozes import Clozes


def chance(clozes: Clozes) -> float:
    """Expected exact match of a candidate drawn at random."""
    return float((clozes.exact_match / _counts(clozes)).sum() / len(clozes))


def most_mentioned(clozes: Clozes) -> float:
    """Exact match of the candidate that the passage names most often."""
    return _exact_match_of(clozes, clozes.mentions.astype(np.int64))


def most_mentioned_not_in_query(clozes: Clozes) -> float:
    """Exact match of that candidate of those which the query does not name; of all, if it names all."""
    mentions = clozes.mentions.astype(np.int64)
    return _exact_match_of(
        clozes, np.where(clozes.in_query > 0, mentions - mentions.max(initial=0) - 1, mentions)
    )


def first_not_in_query(clozes: Clozes) -> float:
    """Exact match of the candidate that the passage names first, of those which the query does not name."""
    return _exact_match_of(clozes, 1 - clozes.in_query.astype(np.int64))


BASELINES = {
    "chance": chance,
    "most_mentioned": most_mentioned,
    "most_mentioned_not_in_query": most_mentioned_not_in_query,
    "first_not_in_query": first_not_in_query,
}


def best_trivial_answer(clozes: Clozes) -> float:
    """The best of them."""
    return max(baseline(clozes) for baseline in BASELINES.values())


def _exact_match_of(clozes: Clozes, score: Array) -> float:
    """Exact match of the candidate with the highest score of each question, the first of several."""
    place = np.arange(len(score))
    order = np.lexsort((place, -score, clozes.question_of))
    return float(clozes.exact_match[order[starts(clozes.candidate_counts)]].mean())


def _counts(clozes: Clozes) -> Array:
    return np.repeat(clozes.candidate_counts, clozes.candidate_counts)
