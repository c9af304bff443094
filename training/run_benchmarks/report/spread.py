"""What the rounds of a case come to together: a table a case that has several that succeeded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from run_benchmarks.comparison.derived import whole_figures
from run_benchmarks.comparison.statistics import HEADINGS, Summary, olympic_mean_of, summarise
from run_benchmarks.results.folder import RoundKey
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.table import MARK, Table
from run_benchmarks.results.tables import by_case
from utils.figures import DEFINITIONS


def spread_tables(
    results: Sequence[RoundResult], lost: Sequence[RoundKey] = ()
) -> Iterator[tuple[str, Table]]:
    """Case by case. lost: the rounds that were begun and have no result."""
    lost_of_case = Counter(key.case for key in lost)
    for case, rounds in by_case(results, lambda each: each.case).items():
        summaries = list(_summaries([each for each in rounds if each.verdict.is_success]))
        reasons = dict.fromkeys(each.no_interval for _, _, each in summaries if each.no_interval)
        notes = [
            *(f"no interval: {reason}" for reason in reasons),
            *_without_extremes(rounds, lost_of_case[case]),
        ]
        marked = _caveats(rounds)
        rows = tuple(_row(*each, MARK if each[0] in marked else "") for each in summaries)
        marks = _marks({name: marked[name] for name, _, _ in summaries if name in marked})
        if rows:
            footnotes = tuple(filter(None, [*marks, *notes]))
            yield case, Table(("figure", "unit", *HEADINGS), rows, fixed=2, footnotes=footnotes)


def _marks(marked: Mapping[str, str]) -> list[str]:
    """The notes of marked figures, those with the same caveat together."""
    names: dict[str, list[str]] = {}
    for name, caveat in marked.items():
        names.setdefault(caveat, []).append(name)
    return [f"{MARK} {', '.join(of)}: {caveat}" for caveat, of in names.items()]


def _caveats(rounds: Sequence[RoundResult]) -> dict[str, str]:
    """Figure -> why it is marked in the first of the rounds that succeeded where it is."""
    figures = (each for result in rounds if result.verdict.is_success for each in result.figures.items())
    marked = [(name, each.caveat) for name, each in figures if each.value is not None and each.caveat]
    return dict(reversed(marked))


def _summaries(rounds: Sequence[RoundResult]) -> Iterator[tuple[str, str, Summary]]:
    """Of each figure that says which way is better, and that at least two rounds have: name, unit, what it comes to."""
    of_rounds = [whole_figures(result) for result in rounds]
    for name in dict.fromkeys(name for figures in of_rounds for name in figures):
        there = [figures[name] for figures in of_rounds if name in figures]
        figures = [each for each in there if each.value is not None]
        values = [each.value for each in figures if each.value is not None]
        if len(values) > 1 and figures[0].better and len({(each.unit, each.scope) for each in figures}) == 1:
            yield name, figures[0].unit, summarise(values)


def _row(name: str, unit: str, summary: Summary, mark: str) -> tuple[str, ...]:
    digits = DEFINITIONS[name].digits if name in DEFINITIONS else 4
    return (f"{name}{mark}", unit, *summary.cells(digits))


def _without_extremes(rounds: Sequence[RoundResult], lost: int) -> Iterator[str]:
    """MLPerf's mean, of all rounds: one that did not converge counts."""
    mean = olympic_mean_of(rounds, lost)
    if mean and len(rounds) + lost > 1:
        text = f"{mean.text()} s" if mean.value is not None else f"none: {mean.reason}"
        yield f"time_to_target, mean without the fastest and the slowest round (MLPerf's rule): {text}"
        yield mean.note(rounds[0].case) if mean.caveat else ""
