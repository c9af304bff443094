"""What the figures of a run's tables mean, each once, and why those that are missing are not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.tables import own_figures
from utils.figures import DEFINITIONS, FINISHED, Figure

WHERE = (
    "Formulas and windows: docs/results.md of FlagPerf, under Figures. Each figure's own window and source stand in "
    "result.json."
)


def meanings(results: Sequence[RoundResult]) -> list[str]:
    """A line a figure that has a value, a line a reason why others have none, and what the rules' stamps say."""
    rounds: dict[
        str, list[RoundResult]
    ] = {}  # that have the figure: each of thousands may have one of its own
    for result in results:
        for name in _in_tables(result):
            rounds.setdefault(name, []).append(result)
    there = {name: list(_with_value(name, of_name)) for name, of_name in rounds.items()}
    lines = [_meaning(name, values) for name, values in there.items() if values]
    return [*lines, *_reasons(rounds), *_stamps(results)]


def _in_tables(result: RoundResult) -> Iterator[str]:
    """FlagPerf's own figures that have a column, those of power where they were measured, then the case's."""
    for name, each in DEFINITIONS.items():
        if each.heading and name in result.figures:
            yield from [name] if not each.of_power or result.figures[name].value is not None else []
    yield from own_figures(result)


def _with_value(name: str, results: Sequence[RoundResult]) -> Iterator[tuple[str, Figure]]:
    """The figure `name` in each of these rounds in which it was measured, with the round's case."""
    for result in results:
        if result.figures[name].value is not None:
            yield result.case, result.figures[name]


def _meaning(name: str, rounds: Sequence[tuple[str, Figure]]) -> str:
    figures = [figure for _, figure in rounds]
    first = figures[0]
    units = ", ".join(dict.fromkeys(figure.unit for figure in figures))
    better = f"; {first.better} is better" if first.better else ""
    origins = ((figure.source, case) for case, figure in rounds if _tells_more(figure))
    sources = [f"{origin}{of_cases}" for origin, of_cases in _grouped(origins, {case for case, _ in rounds})]
    return f"`{_label(name)}` ({units}{better}): {'; '.join((first.definition, *sources))}"


def _tells_more(figure: Figure) -> bool:
    """Whether its source says what its definition, or being reported by the case, does not."""
    return not figure.source.endswith(FINISHED) and figure.source not in figure.definition.replace("`", "")


def _reasons(rounds_of: Mapping[str, Sequence[RoundResult]]) -> Iterator[str]:
    """Why figures have no value in rounds that went well; one that failed has said what went wrong."""
    labels: dict[str, list[str]] = {}
    for name, results in rounds_of.items():
        rounds = [each for each in results if each.failure is None]
        missing = (
            (each.figures[name].source, each.case) for each in rounds if each.figures[name].value is None
        )
        for reason, of_cases in _grouped(missing, {each.case for each in rounds}):
            labels.setdefault(f"{of_cases}: {reason}", []).append(f"`{_label(name)}`")
    yield from (f"no {', '.join(figures)}{reason}" for reason, figures in labels.items())


def _stamps(results: Sequence[RoundResult]) -> Iterator[str]:
    cases = {result.case for result in results}
    stamps = ((result.rules.explanation(), result.case) for result in results)
    for stamp, of_cases in _grouped(stamps, cases):
        yield f"`rules`{of_cases}: {stamp}"
    code = [
        (line, result.case)
        for result in results
        for line in (result.rules.hooks_line(), result.rules.environment_line())
        if line
    ]
    for line, of_cases in _grouped(code, cases):
        yield f"{line}{of_cases}"


def _grouped(texts: Iterable[tuple[str, str]], everywhere: set[str]) -> Iterator[tuple[str, str]]:
    """Each text once, with the cases of which it is said, unless it is said of all."""
    cases: dict[str, dict[str, None]] = {}
    for text, case in texts:
        cases.setdefault(text, {})[case] = None
    for text, of_cases in cases.items():
        yield text, "" if set(of_cases) == everywhere else f" ({', '.join(of_cases)})"


def _label(name: str) -> str:
    return DEFINITIONS[name].heading or name if name in DEFINITIONS else name
