"""Rows of the index as cells, the same for a terminal and for a page; and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from run_benchmarks.commands import run_command
from run_benchmarks.exit_code import MEANINGS
from run_benchmarks.history.entries import State
from run_benchmarks.history.query import COLUMNS, NUMBERS, Row
from run_benchmarks.results.table import MARK, NOT_MEASURED
from utils.figures import DEFINITIONS
from utils.numbers import DIGITS, shown
from utils.records import Verdict
from utils.text_files import shortened

ALWAYS = ("run", "case", "round", "verdict", "started", "rules")
AGAIN = "again"  # where a round was run again: why
IF_ANY = ("time_to_target", "p_train", "MFU", "acc", "energy")
MOST_NOTES = 3  # of a run: `run.py show` has all
LONGEST_CELL = 60
SUCCESSES = {verdict.value for verdict in Verdict if verdict.is_success}


def columns_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """The columns that are shown where nobody asks for others: of the figures those that any row has."""
    there = {name for row in rows for name in row.figures}
    again = (AGAIN,) if any(row.again for row in rows) else ()
    return (*ALWAYS, *again, *(name for name in IF_ANY if name in there))


def heading(column: str, rows: Sequence[Row]) -> str:
    """A column's heading; a figure's has its unit, where the rows agree on it."""
    if column in DEFINITIONS and DEFINITIONS[column].heading:
        return DEFINITIONS[column].heading
    return f"{column} {unit_of(column, rows)}".rstrip()


def unit_of(figure: str, rows: Sequence[Row]) -> str:
    """What a figure is measured in, where all rows that have it agree on it."""
    units = _units(figure, rows)
    return units.pop() if len(units) == 1 and units != {"1"} else ""


def with_several_units(figures: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """The figures on whose unit, or part of a machine, the rows do not agree: values of two are not to be compared."""
    return [figure for figure in dict.fromkeys(figures) if len(_units(figure, rows)) > 1]


def _units(figure: str, rows: Sequence[Row]) -> set[str]:
    return {row.figures[figure].full_unit for row in rows if figure in row.figures}


def cell(row: Row, column: str, *, with_unit: bool = False) -> str:
    """What a row has in a column; of a run without rounds the verdict is how far it came."""
    if column == "verdict" and not row.verdict:
        return row.state
    if column == "started":
        return row.started[:16].replace("T", " ") or NOT_MEASURED
    if column in COLUMNS:
        value = getattr(row, column)
        return NOT_MEASURED if value in (None, "") else shortened(str(value), LONGEST_CELL)
    figure = row.figures.get(column)
    if figure is None:
        return NOT_MEASURED
    digits = DEFINITIONS[column].digits if column in DEFINITIONS else DIGITS
    unit = f" {figure.full_unit}" if with_unit and figure.full_unit else ""
    return shown(figure.value, digits) + (MARK if figure.caveat else "") + unit


def remarks(rows: Sequence[Row], columns: Sequence[str], log_path: Path) -> list[str]:
    """What is to be known of these rows, of runs in `log_path`: why values are marked; runs that go on, or did not
    end, or are not whole.
    """
    lines = [
        f"{MARK} {text}" for text in dict.fromkeys(text for row in rows for text in caveats(row, columns))
    ]
    for row in {row.key: row for row in rows}.values():
        more = run_command("show", str(log_path / row.run))
        notes = [*_ending_without_rounds(row, more), *row.notes[:MOST_NOTES]]
        if len(row.notes) > MOST_NOTES:
            notes.append(f"{len(row.notes) - MOST_NOTES} more: {more}")
        if not notes and row.state != State.ENDED:
            notes = [row.state]
        lines += [f"{row.run}: {'; '.join(notes)}"] if notes else []
    return lines


def caveats(row: Row, figures: Sequence[str]) -> list[str]:
    """Why values of a row are marked."""
    marked = {name: row.figures[name].caveat for name in figures if name in row.figures}
    return [f"{name}: {caveat}" for name, caveat in marked.items() if caveat]


def is_number(column: str) -> bool:
    """Whether its cells are numbers, which stand on the right."""
    return column not in COLUMNS or column in NUMBERS


def look(row: Row) -> str:
    """Whether a row's verdict is good, bad, or not there yet."""
    if row.verdict:
        return "good" if row.verdict in SUCCESSES else "bad"
    return {State.GOES_ON: "doubtful", State.ENDED: ""}.get(State(row.state), "bad")


def _ending_without_rounds(row: Row, more: str) -> list[str]:
    """Of a run that ended and has no round: its exit code, what that means, and the command that says more of it."""
    if row.verdict or row.exit_code is None:
        return []
    meaning = MEANINGS.get(row.exit_code, "")
    return [f"exit code {row.exit_code}{meaning and f', {meaning}'} (more: {more})"]


def as_dict(row: Row) -> dict[str, Any]:
    """The row as JSON has it: what is not there is null."""
    return {name: None if value == "" else value for name, value in asdict(row).items() if name != "key"}
