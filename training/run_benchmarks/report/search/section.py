"""What a report shows of a round that searched: whether it succeeded, its course, its family tree, its workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from run_benchmarks.names import FOLLOWED_EVENTS
from run_benchmarks.report.chart import TIME, Axis, Chart, Line, chart
from run_benchmarks.report.search.family import family_of, lines_of
from run_benchmarks.report.search.timeline import timeline_of
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.search.figures import SCORE_UNIT, TERA
from run_benchmarks.results.search.log import SearchLog, read_search
from run_benchmarks.results.search.of_round import ancestors
from run_benchmarks.results.search.rules import LEAST_ACCURACY
from utils.numbers import shown
from utils.search.account import Account, Trial
from utils.search.events import CONTROLLER_LOG

MOST_POINTS = 1_000  # of a curve
MOST_BEST, MOST_ANCESTORS = 10, 4
BEST_HEADINGS = (
    "trial", "accuracy", "epochs", "layers", "parameters", "operations forward", "both ways", "batch", "dropout",
    "kernel", "made of", "by",
)  # fmt: skip


def log_of(result: RoundResult, folder: Path | None) -> SearchLog | None:
    """What the controller of a round's search has said; None of a round that is none. folder: the first node's."""
    if result.search is None or folder is None:
        return None
    log = folder / CONTROLLER_LOG
    return read_search(log if log.is_file() else folder.parent / FOLLOWED_EVENTS)


def search_view(result: RoundResult, log: SearchLog, hide: Callable[[str], str]) -> dict[str, Any]:
    """What the template shows."""
    account = log.account
    family = family_of(account, hide)
    return {
        "outcome": outcome_of(result),
        "charts": list(map(chart, _charts(account, f"{result.case} {result.round} search"))),
        "family": family,
        "edges": list(lines_of(family)) if family else [],
        "timeline": timeline_of(account, result.hosts),
        "states": dict(sorted(account.ended.items())),
        "best": [[hide(cell) for cell in row] for row in _best(account)],
        "best_headings": BEST_HEADINGS,
    }


def outcome_of(result: RoundResult) -> tuple[bool, str]:
    """Whether it succeeded, as AIPerf's users ask, and why it did not, or what else is to be known."""
    if not result.verdict.is_success:
        return False, result.failure.headline if result.failure else result.verdict.value
    is_trial_run = result.search is not None and result.search.is_trial_run
    return True, "a trial run, which is not comparable" if is_trial_run else "by all rules"


def _charts(account: Account, link: str) -> Iterator[Chart]:
    points = _thinned(list(account.in_time()))
    if not points:
        return
    axis = Axis("time", [round(seconds, 3) for seconds, _, _ in points], TIME)
    shared: dict[str, Any] = {"axes": [axis], "link": link, "end": account.seconds}
    best = Line("best so far", [accuracy for _, _, accuracy in points])
    levels = [("counts above", LEAST_ACCURACY)]
    yield Chart("Accuracy of the best trial", "", lines=[best], levels=levels, **shared)
    scores = [operations / seconds / TERA if seconds else None for seconds, operations, _ in points]
    yield Chart("Score", SCORE_UNIT, lines=[Line("score", scores)], is_from_zero=True, **shared)


def _thinned(points: Sequence[tuple[float, int, float]]) -> list[tuple[float, int, float]]:
    """The last point of each moment, and of many moments at most so many."""
    points = list({point[0]: point for point in points}.values())
    step = -(-len(points) // MOST_POINTS) or 1
    return [*points[:-1:step], *points[-1:]]


def _best(account: Account) -> Iterator[list[str]]:
    measured = [trial for trial in account.trials.values() if trial.accuracy is not None]
    measured.sort(key=lambda trial: (-(trial.accuracy or 0.0), trial.start.trial))
    return (_row(account, trial) for trial in measured[:MOST_BEST])


def _row(account: Account, trial: Trial) -> list[str]:
    start = trial.start
    line = [str(each.trial) for each in ancestors(account, start)]
    more = f" and {len(line) - MOST_ANCESTORS} before" if len(line) > MOST_ANCESTORS else ""
    numbers = (
        start.layers,
        start.parameters,
        start.forward_operations,
        start.training_operations,
        start.batch_size,
    )
    return [
        str(start.trial),
        f"{trial.accuracy or 0.0:.4f}",
        f"{len(trial.epochs)} of {start.epochs}",
        *(f"{number:,}" for number in numbers),
        shown(start.dropout),
        str(start.kernel),
        (" < ".join(line[:MOST_ANCESTORS]) or "-") + more,
        ", ".join(start.edits) or "-",
    ]
