"""The tables that a user reads: the rounds with training's figures, each case's own figures, the preflight."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from run_benchmarks.plan.host_ranges import alike, fold
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.search.scaling import scaling_table
from run_benchmarks.results.table import MARK, NOT_MEASURED, Table, aligned
from run_benchmarks.stages.checks import Check, Status, with_status
from utils.figures import DEFINITIONS, Definition, Figure
from utils.numbers import DIGITS, counted, shown

T = TypeVar("T")
MOST_CELLS = (
    500_000  # of the cases' own tables: a round may have hundreds of figures, each in a unit of its own
)
_MARKS = {Status.OK: "ok", Status.SKIPPED: NOT_MEASURED, Status.WARNING: "WARN", Status.ERROR: "FAILED"}


def results_tables(results: Sequence[RoundResult]) -> list[Table]:
    """A table a kind of case, a row a round; one of power, if any; one a case with figures of its own; one of how
    searches scale, where some have more workers than others."""
    kinds = dict.fromkeys(result.kind for result in results)
    rounds = [_rounds([result for result in results if result.kind == kind]) for kind in kinds]
    cases = by_case(results, lambda each: each.case)
    most = MOST_CELLS // max(1, len(results))
    own = [_own_figures(case, of_case, most) for case, of_case in cases.items()]
    power = _power([result for result in results if _has_power(result)])
    return [*rounds, *(table for table in (power, *own, scaling_table(results)) if table.rows)]


def by_case(rounds: Iterable[T], case_of: Callable[[T], str]) -> dict[str, list[T]]:
    """The rounds of each case, in one pass: a stranger's run may have a case for each of thousands of rounds."""
    cases: dict[str, list[T]] = {}
    for each in rounds:
        cases.setdefault(case_of(each), []).append(each)
    return cases


def results_text(results: Sequence[RoundResult], width: int | None) -> str:
    """The tables as text, none wider than `width` characters where that can be (None: no limit)."""
    return "\n\n".join(table.text(width) for table in results_tables(results))


def _rounds(results: Sequence[RoundResult]) -> Table:
    columns = _columns(results)
    headings = ("case", "round", "verdict", *(column.heading for column in columns), "rules")
    notes = tuple(note for result in results for note in _footnotes(result, [each.name for each in columns]))
    notes += tuple(_again(result) for result in results if result.attempts)
    notes += _job_energies(result for result in results if not _has_power(result))
    rows = tuple(_round_row(result, columns) for result in results)
    return Table(headings, rows, fixed=3, footnotes=notes, is_grouped=True)


def _has_power(result: RoundResult) -> bool:
    return any(each.value is not None for each in _of_power(result))


def _of_power(result: RoundResult) -> Iterator[Figure]:
    return (
        figure
        for name, figure in result.figures.items()
        if name in DEFINITIONS and DEFINITIONS[name].of_power
    )


def _power(results: Sequence[RoundResult]) -> Table:
    """A row a round in which any of it was measured; a column of which no round has a value is left out."""
    columns = [
        each
        for each in DEFINITIONS.values()
        if each.of_power
        and any(
            each.name in result.figures and result.figures[each.name].value is not None for result in results
        )
    ]
    names = [column.name for column in columns]
    rows = tuple(
        (
            result.case,
            str(result.round),
            next((each.scope for each in _of_power(result) if each.scope), NOT_MEASURED),
            *(_shown(result.figures.get(column.name), column.digits) for column in columns),
        )
        for result in results
    )
    headings = ("power and energy", "round", "of the", *(column.heading for column in columns))
    notes = tuple(note for result in results for note in _footnotes(result, names))
    return Table(headings, rows, fixed=3, footnotes=(*notes, *_job_energies(results)), is_grouped=True)


def _job_energies(results: Iterable[RoundResult]) -> tuple[str, ...]:
    energies = ((result, job_energy(result)) for result in results)
    return tuple(f"{result.case}, round {result.round}: {energy}" for result, energy in energies if energy)


def job_energy(result: RoundResult) -> str:
    """The energy by the scheduler's accounting, and of what it is; empty where that has none."""
    job = result.allocation
    if job is None or job.energy_j is None:
        return ""
    of_what = (
        f"of {counted(len(job.nodes), 'node')} from the job's start to its end, not of the training alone"
    )
    return f"the accounting of {job.scheduler} has {shown(job.energy_j)} J for job {job.job}, {of_what}"


def _footnotes(result: RoundResult, names: Iterable[str]) -> Iterator[str]:
    """Why cells of a round are marked: a line a reason."""
    reasons: dict[str, list[str]] = {}
    for name in names:
        figure = result.figures.get(name)
        if figure and figure.caveat:
            reasons.setdefault(figure.caveat, []).append(name)
    for caveat, marked in reasons.items():
        yield f"{MARK} {', '.join(marked)} of {result.case}, round {result.round}: {caveat}"


def _again(result: RoundResult) -> str:
    """Which attempts a round took, and why."""
    attempts = "; ".join(attempt.note for attempt in result.attempts)
    before = result.attempts[-1].hosts
    others = [pair for pair in zip(before, result.hosts, strict=False) if pair[0] != pair[1]]
    places = "".join(f", with {now} in the place of {then}" for then, now in others)
    return f"{result.case}, round {result.round} was run again{places}: {attempts}"


def numbered(number: object, failed: int) -> str:
    """A round's number as it is shown, with the attempt that it is at: so many `failed` before that."""
    return f"{number} (attempt {failed + 1})" if failed else str(number)


def _columns(results: Sequence[RoundResult]) -> list[Definition]:
    """The registry's columns that any of these results has."""
    there = {name for result in results for name in result.figures}
    return [
        each for each in DEFINITIONS.values() if each.heading and not each.of_power and each.name in there
    ]


def _round_row(result: RoundResult, columns: Sequence[Definition]) -> tuple[str, ...]:
    number = str(result.round)
    if result.continued is not None:
        number += f" (from step {result.continued.get('step')})"
    number = numbered(number, len(result.attempts))
    cells = (_shown(result.figures.get(column.name), column.digits) for column in columns)
    return (result.case, number, result.verdict.value, *cells, result.rules.stamp or NOT_MEASURED)


def _own_figures(case: str, results: Sequence[RoundResult], most: int) -> Table:
    """What a case measures by its own definition; a figure that no round has a value of is only explained.

    A name that rounds use for other units, or with the other way as the better, has a row for each; there are `most`
    rows, and a note says of how many.
    """
    rounds = [result for result in results if own_figures(result)]
    names = dict.fromkeys(name for result in rounds for name in own_figures(result))
    kinds = dict.fromkeys(
        _kind(name, each.figures[name]) for name in names for each in rounds if name in each.figures
    )
    rows = []
    for kind in islice(kinds, most):
        figures = [each.figures.get(kind[0]) for each in rounds]
        figures = [each if each and _kind(kind[0], each) == kind else None for each in figures]
        if any(each and each.value is not None for each in figures):
            rows.append((*kind, *map(_shown, figures)))
    headings = (case, "unit", "better", *(f"round {result.round}" for result in rounds))
    notes = [note for result in rounds for note in _footnotes(result, names)]
    if len(kinds) > most:
        notes.append(f"of {case} {len(kinds)} figures, each unit by itself; more than {most} are not shown")
    return Table(headings, tuple(rows), fixed=3, footnotes=tuple(notes))


def _kind(name: str, figure: Figure) -> tuple[str, str, str]:
    return name, figure.unit, figure.better or NOT_MEASURED


def own_figures(result: RoundResult) -> dict[str, Figure]:
    """The figures that the case defines itself."""
    return {name: figure for name, figure in result.figures.items() if name not in DEFINITIONS}


def preflight_text(checks: Mapping[str, Sequence[Check]]) -> str:
    """The preflight as plain text: a mark a check, and a row for all hosts with the same marks."""
    names = list(dict.fromkeys(check.name for of_host in checks.values() for check in of_host))
    hosts: dict[tuple[str, ...], list[str]] = {}
    for host, of_host in checks.items():
        marks = {check.name: _MARKS[check.status] for check in of_host}
        hosts.setdefault(tuple(marks.get(name, NOT_MEASURED) for name in names), []).append(host)
    return aligned([("host", *names), *((fold(same), *marks) for marks, same in hosts.items())])


def remarks(checks: Mapping[str, Sequence[Check]], *statuses: Status) -> list[str]:
    """A line a check that was not passed: what it saw, and what to do; hosts that say the same share it."""
    by_name: dict[str, dict[str, str]] = {}
    for host, check in with_status(checks, *(statuses or (Status.WARNING, Status.ERROR))):
        line = f"{check.name}: {' '.join(check.detail.split())} -> {check.remedy}"
        by_name.setdefault(check.name, {})[host] = line
    return [f"{hosts}: {line}" for of_hosts in by_name.values() for hosts, line in alike(of_hosts)]


def _shown(figure: Figure | None, digits: int = DIGITS) -> str:
    if figure is None:
        return NOT_MEASURED
    text = NOT_MEASURED if figure.value is None else shown(figure.value, digits)
    return text + (MARK if figure.caveat else "")
