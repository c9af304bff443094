"""Weak scaling: what a search on n workers comes to, against n times one on a single worker."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.search.record import SearchResult
from run_benchmarks.results.table import NOT_MEASURED, Table
from utils.numbers import DIGITS, shown

HEADINGS = ("weak scaling", "round", "workers", "chips", "score, TOP/s", "of a worker", "of one alone")
ALONE = (
    "of one alone: the score of a worker / that of a search on one worker with as many chips, for as long "
    "(search_seconds) and by the same rules, mean of its rounds"
)


def scaling_table(results: Sequence[RoundResult]) -> Table:
    """A row a search that counts; what is compared has one model, chips a worker, precision, data, length and rules."""
    rows, alone = [], _alone(results)
    for result in results:
        search, score = result.search, _score(result)
        if search is None or score is None or not search.workers:
            continue
        own = score / search.workers
        base = alone.get(_kind(result, search))
        part = NOT_MEASURED if base is None else shown(own / statistics.fmean(base), DIGITS)
        numbers = (str(search.workers), str(search.ranks), shown(score, DIGITS), shown(own, DIGITS), part)
        rows.append((result.case, str(result.round), *numbers))
    has_several = len({row[2] for row in rows}) > 1
    return Table(HEADINGS, tuple(rows) if has_several else (), fixed=2, footnotes=(ALONE,))


def _alone(results: Sequence[RoundResult]) -> dict[tuple[object, ...], list[float]]:
    """The scores of searches on one worker, by what they may be compared with."""
    alone: dict[tuple[object, ...], list[float]] = {}
    for result in results:
        score = _score(result)
        if result.search and result.search.workers == 1 and score:
            alone.setdefault(_kind(result, result.search), []).append(score)
    return alone


def _kind(result: RoundResult, search: SearchResult) -> tuple[object, ...]:
    model = result.case.split(":")[:3]  # with framework and chip
    ranks = search.ranks / max(1, search.workers)
    task = (search.data_digest, search.search_seconds, result.rules.stamp, *result.rules.reasons())
    return (*model, ranks, search.precision, *task)


def _score(result: RoundResult) -> float | None:
    figure = result.figures.get("score")
    return figure.value if figure and result.verdict.is_success else None
