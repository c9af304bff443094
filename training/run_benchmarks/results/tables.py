"""The tables that a user reads: the rounds with training's figures, each case's own figures, the preflight."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from run_benchmarks.results.markdown import inline, table_row
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.stages.checks import Check, Status, with_status
from utils.figures import DEFINITIONS, Definition, Figure
from utils.numbers import DIGITS, shown
from utils.text_files import one_line

NOT_MEASURED = "-"
MARK = "*"  # behind a value: a footnote of the table says what to know of it
_MARKS = {Status.OK: "ok", Status.SKIPPED: NOT_MEASURED, Status.WARNING: "WARN", Status.ERROR: "FAILED"}


@dataclass(frozen=True)
class Table:
    """Headings and rows of cells. The first `fixed` columns say what a row is of; `footnotes` explain marked cells.

    is_grouped: where the table is too wide, each value of the first column stands above its rows.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    fixed: int
    footnotes: tuple[str, ...] = ()
    is_grouped: bool = False

    def text(self, width: int | None = None) -> str:
        """The table as text; what is wider than `width` characters (None: no limit) is broken into parts."""
        whole = aligned([self.headings, *self.rows])
        if width is not None and _width(whole) > width and len(self.headings) > self.fixed:
            whole = self._in_groups(width) if self.is_grouped else self._in_parts(width)
        return "\n".join([whole, *(textwrap.fill(note, width or len(note)) for note in self.footnotes)])

    def markdown(self) -> str:
        """The table as Markdown."""
        rule = tuple("---" for _ in self.headings)
        lines = map(table_row, (self.headings, rule, *self.rows))
        return "\n".join([*lines, *(f"\n{inline(note)}" for note in self.footnotes)])

    def _in_groups(self, width: int) -> str:
        """The rows of each value of the first column by themselves, below it."""
        groups: dict[str, list[tuple[str, ...]]] = {}
        for first, *cells in self.rows:
            groups.setdefault(first, []).append(tuple(cells))
        return "\n\n".join(
            f"{one_line(first)}\n{Table(self.headings[1:], tuple(rows), self.fixed - 1).text(width)}"
            for first, rows in groups.items()
        )

    def _in_parts(self, width: int) -> str:
        """Side by side as many columns as fit, and the rest below."""
        parts, first = [], self.fixed
        while first < len(self.headings):
            last = first + 1
            while last < len(self.headings) and _width(self._part(first, last + 1)) <= width:
                last += 1
            parts.append(self._part(first, last))
            first = last
        return "\n\n".join(parts)

    def _part(self, first: int, last: int) -> str:
        rows = ((*row[: self.fixed], *row[first:last]) for row in (self.headings, *self.rows))
        return aligned(list(rows))


def results_tables(results: Sequence[RoundResult]) -> list[Table]:
    """A table a kind of case, a row a round; then one a case that has figures of its own, a row a figure."""
    kinds = dict.fromkeys(result.kind for result in results)
    cases = dict.fromkeys(result.case for result in results)
    rounds = [_rounds([result for result in results if result.kind == kind]) for kind in kinds]
    own = [_own_figures(case, [result for result in results if result.case == case]) for case in cases]
    return [*rounds, *(table for table in own if table.rows)]


def results_text(results: Sequence[RoundResult], width: int | None) -> str:
    """The tables as text, none wider than `width` characters where that can be (None: no limit)."""
    return "\n\n".join(table.text(width) for table in results_tables(results))


def _rounds(results: Sequence[RoundResult]) -> Table:
    columns = _columns(results)
    headings = ("case", "round", "verdict", *(column.heading for column in columns), "rules")
    notes = tuple(note for result in results for note in _footnotes(result, [each.name for each in columns]))
    rows = tuple(_round_row(result, columns) for result in results)
    return Table(headings, rows, fixed=3, footnotes=notes, is_grouped=True)


def _footnotes(result: RoundResult, names: Iterable[str]) -> Iterator[str]:
    """Why cells of a round are marked: a line a reason."""
    reasons: dict[str, list[str]] = {}
    for name in names:
        figure = result.figures.get(name)
        if figure and figure.caveat:
            reasons.setdefault(figure.caveat, []).append(name)
    for caveat, marked in reasons.items():
        yield f"{MARK} {', '.join(marked)} of {result.case}, round {result.round}: {caveat}"


def _columns(results: Sequence[RoundResult]) -> list[Definition]:
    """The registry's columns that any of these results has."""
    there = {name for result in results for name in result.figures}
    return [each for each in DEFINITIONS.values() if each.heading and each.name in there]


def _round_row(result: RoundResult, columns: Sequence[Definition]) -> tuple[str, ...]:
    number = str(result.round)
    if result.continued is not None:
        number += f" (from step {result.continued.get('step')})"
    cells = (_shown(result.figures.get(column.name), column.digits) for column in columns)
    return (result.case, number, result.verdict.value, *cells, result.rules.stamp or NOT_MEASURED)


def _own_figures(case: str, results: Sequence[RoundResult]) -> Table:
    """What a case measures by its own definition; a figure that no round has a value of is only explained."""
    rounds = [result for result in results if own_figures(result)]
    names = dict.fromkeys(name for result in rounds for name in own_figures(result))
    rows = []
    for name in names:
        figures = [result.figures.get(name) for result in rounds]
        first = next((figure for figure in figures if figure and figure.value is not None), None)
        if first:
            rows.append((name, first.unit, first.better or NOT_MEASURED, *map(_shown, figures)))
    headings = (case, "unit", "better", *(f"round {result.round}" for result in rounds))
    notes = tuple(note for result in rounds for note in _footnotes(result, names))
    return Table(headings, tuple(rows), fixed=3, footnotes=notes)


def own_figures(result: RoundResult) -> dict[str, Figure]:
    """The figures that the case defines itself."""
    return {name: figure for name, figure in result.figures.items() if name not in DEFINITIONS}


def preflight_text(checks: Mapping[str, Sequence[Check]]) -> str:
    """The preflight as plain text: a row a host, a mark a check."""
    names = list(dict.fromkeys(check.name for of_host in checks.values() for check in of_host))
    rows = [("host", *names)]
    for host, of_host in checks.items():
        marks = {check.name: _MARKS[check.status] for check in of_host}
        rows.append((host, *(marks.get(name, NOT_MEASURED) for name in names)))
    return aligned(rows)


def remarks(checks: Mapping[str, Sequence[Check]]) -> list[str]:
    """A line a check that was not passed: what it saw, and what to do."""
    return [
        f"{host}: {check.name}: {' '.join(check.detail.split())} -> {check.remedy}"
        for host, check in with_status(checks, Status.WARNING, Status.ERROR)
    ]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as text, columns aligned."""
    if not rows:
        return ""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _width(text: str) -> int:
    return max(map(len, text.splitlines()))


def _shown(figure: Figure | None, digits: int = DIGITS) -> str:
    if figure is None:
        return NOT_MEASURED
    text = NOT_MEASURED if figure.value is None else shown(figure.value, digits)
    return text + (MARK if figure.caveat else "")
