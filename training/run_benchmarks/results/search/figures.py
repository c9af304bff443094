"""The figures of a search, each computed here from its controller's events."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import replace

from run_benchmarks.results.search.record import MOST_POINTS, Point
from utils.figure_records import FULL_COVERAGE, HIGHER, LOWER, Figure
from utils.numbers import shown
from utils.search.account import Account

TERA = 1e12
SCORE_UNIT = "TOP/s"
STEP_S = 360.0  # of the series of the score: a tenth of an hour, ...
LEAST_POINTS = 30  # ... and shorter where a search has not so many of them
SHORTEST_S = 1e-3  # that can be divided
WINDOW = "first trial's start..last epoch's end"
SOURCE = "events of the search's controller"
_SCORE = "operations of all epochs / time: of each epoch its samples x those of one, trained and validated"
# name -> unit, which way is better, definition
DEFINED: Mapping[str, tuple[str, str | None, str]] = {
    "score": (SCORE_UNIT, HIGHER, _SCORE),
    "accuracy": ("1", HIGHER, "the best accuracy of any trial's validation"),
    "error": ("%", LOWER, "100 (1 - accuracy)"),
    "regulated_score": (SCORE_UNIT, HIGHER, "score x |ln(1 - accuracy)|"),
    "score_per_watt": ("TOP/J", HIGHER, "score / mean power of all nodes"),
    "stability": ("1", LOWER, "standard deviation / mean of the score in the last third of the time"),
    "waiting": ("1", LOWER, "the part of the chips' time in which their worker was there and had no trial"),
    "trials": ("trials", None, "handed out, one that was lost and handed out again once"),
    "lost_trials": ("trials", LOWER, "how often a trial was lost with its worker"),
    "failed_trials": ("trials", LOWER, "that ended with an error"),
    "epochs": ("epochs", None, "of all trials, of each its last attempt"),
    "search_time": ("s", None, "from the first trial's start to the last epoch's end"),
}


def series_of(account: Account) -> list[Point]:
    """The course of a search, every STEP_S or, of a short one, so often that it has LEAST_POINTS, and at its end."""
    whole = account.seconds
    if whole is None or whole < SHORTEST_S:
        return []
    step = max(min(STEP_S, whole / LEAST_POINTS), whole / (MOST_POINTS - 1))
    points, at, operations, accuracy = [], step, 0, 0.0
    for seconds, until, best in account.in_time():
        while at < min(seconds, whole):
            points.append(Point(at, operations / at, accuracy))
            at = step * (len(points) + 1)
        operations, accuracy = until, best
    return [*points, Point(whole, operations / whole, accuracy)]


def search_figures(
    account: Account, energy: Figure | None, nodes: int, reason: str = ""
) -> dict[str, Figure]:
    """All figures of a search; one that is not measured says why.

    Args:
        energy: of the same window, J a node, of so many nodes. reason: why all of them are to be marked.
    """
    values = dict(_values(account))
    away_s = account.start.away_s if account.start else 0.0
    away = f"for {shown(away_s)} s of its time it had no controller" if away_s else ""
    caveat = "; ".join(filter(None, (reason, away)))
    missing = "no epoch has ended" if account.score is None else "it has no epoch with an accuracy below 1"
    figures = {
        name: Figure(values.get(name), unit, WINDOW, SOURCE, better, definition, caveat=caveat)
        for name, (unit, better, definition) in DEFINED.items()
    }
    figures["score_per_watt"] = _per_watt(account, energy, nodes, figures["score_per_watt"])
    return {
        name: each if each.value is not None or name == "score_per_watt" else replace(each, source=missing)
        for name, each in figures.items()
    }


def _values(account: Account) -> Iterator[tuple[str, float]]:
    ended, waiting, best = account.ended, account.waiting(), account.best
    yield from (
        ("trials", len(account.trials)),
        ("lost_trials", ended["lost"]),
        ("failed_trials", ended["failed"]),
    )
    yield "epochs", sum(len(trial.epochs) for trial in account.trials.values())
    if waiting is not None:
        yield "waiting", waiting
    if account.score is None or account.seconds is None or best is None or best.accuracy is None:
        return
    accuracy, score = best.accuracy, account.score / TERA
    yield from (("score", score), ("accuracy", accuracy), ("error", 100 * (1 - accuracy)))
    yield "search_time", account.seconds
    if accuracy < 1:
        yield "regulated_score", score * abs(math.log(1 - accuracy))
    last = [point.score for point in series_of(account) if point.seconds >= account.seconds * 2 / 3]
    if len(last) > 1 and (mean := statistics.fmean(last)):
        yield "stability", statistics.stdev(last) / mean


def _per_watt(account: Account, energy: Figure | None, nodes: int, figure: Figure) -> Figure:
    if energy is None or not energy.value:
        return replace(
            figure, source=f"there is no energy: {energy.source if energy else 'it was not sampled'}"
        )
    if energy.coverage is not None and energy.coverage < FULL_COVERAGE:
        return replace(
            figure, source=f"only {energy.coverage:.1%} of the search was sampled: {energy.source}"
        )
    joules = energy.value * nodes
    source = f"{SOURCE} / {shown(joules)} J of {nodes} nodes: {energy.source}"
    return replace(
        figure,
        value=account.operations / TERA / joules,
        source=source,
        scope=energy.scope,
        coverage=energy.coverage,
        caveat="; ".join(filter(None, (figure.caveat, energy.caveat))),
    )
