"""What is asked of the index: conditions, an order, a part. Values are parameters of SQL, never parts of its text."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from run_benchmarks.history.index import Index
from utils.errors import FlagPerfError, nearest, nearest_first
from utils.figures import DEFINITIONS
from utils.text_files import one_line

TEXTS = ("run", "uid", "state", "case", "verdict", "rules", "kind", "hosts", "again")
NUMBERS = ("round", "exit_code")
STARTED = "started"
MOST_UNITS = 5  # that are named
MOST_CONDITIONS = 20  # each is checked against all others
COLUMNS = (*TEXTS, *NUMBERS, STARTED)
FORM = (
    "a condition is NAME, a sign (= != ~ < <= > >=) and a value: "
    '"p_train > 100", "case ~ bert", "started >= 2026-11-01"'
)
_NUMBER = re.compile(r"([^ ]+)(?: +([^ ].*))?")  # and its unit
_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|!=|==|=|<|>|~)\s*(.*?)\s*", re.ASCII | re.DOTALL)
_AGE = re.compile(r"(\d{1,6})([hd])", re.ASCII)
_SIGNS_OF_TEXT = ("=", "!=", "~")
_OF_COLUMN = {
    **{name: f'listed."{name}"' for name in (*TEXTS, *NUMBERS)},
    STARTED: "julianday(listed.started)",
}
_OF_FIGURE = "(SELECT json_extract(value, '$.value') FROM json_each(listed.figures) WHERE key = ?)"
# What a value is of, as `Measured.full_unit` says it: values of two are not held against each other.
_FULL_UNIT_OF_FIGURE = _OF_FIGURE.replace(
    "json_extract(value, '$.value')",
    "rtrim(json_extract(value, '$.unit') || ', ' || json_extract(value, '$.scope'), ', ')",
)

Clause = tuple[str, list[object]]  # of a WHERE, and the values of its parameters


@dataclass(frozen=True)
class Condition:
    """`name sign value`; sign `~`: the text holds it, whichever case its letters have.

    value: of a figure a number, with a unit behind it where not all rounds have the same.
    """

    name: str
    sign: str
    value: str


@dataclass(frozen=True)
class Query:
    """Which rounds, in which order. sort: a column or a figure, with `-` before it: the largest first.

    limit: how many at most; None for all.
    """

    conditions: tuple[Condition, ...] = ()
    sort: str = f"-{STARTED}"
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class Measured:
    """A figure of a listed round; caveat, scope: as in `Figure`."""

    value: float
    unit: str
    caveat: str
    scope: str

    @property
    def full_unit(self) -> str:
        """Its unit and, of power and energy, the part of a machine that they are of."""
        return ", ".join(filter(None, (self.unit, self.scope)))


_FIGURES = msgspec.json.Decoder(dict[str, Measured])  # of thousands of rows


@dataclass(frozen=True)
class Row:
    """A round, or a run that has none (`case` and `verdict` are empty then).

    again: why attempts before the one that counts failed. notes: of its run.
    """

    key: str
    run: str
    uid: str
    state: str
    exit_code: int | None
    case: str
    round: int | None
    verdict: str
    rules: str
    kind: str
    hosts: str
    started: str
    again: str = ""
    notes: tuple[str, ...] = ()
    figures: Mapping[str, Measured] = field(default_factory=dict)


def condition_of(text: str) -> Condition:
    """The condition in a text such as `p_train > 100`; FlagPerfError where there is none."""
    match = _CONDITION.fullmatch(text)
    if not match or not match[3]:
        raise FlagPerfError(f"{text!r} is no condition", remedy=FORM)
    return Condition(match[1], "=" if match[2] == "==" else match[2], match[3].strip("\"'"))


def figure_names(index: Index) -> list[str]:
    """The figures that any round of the index has a value of."""
    with index.use() as connection:
        sql = "SELECT DISTINCT each.key FROM rounds, json_each(rounds.figures) AS each ORDER BY 1"
        return [name for (name,) in connection.execute(sql)]


def values_of(index: Index, column: str) -> list[str]:
    """What stands in a column of texts."""
    assert column in TEXTS  # noqa: S101 - no user names it
    sql = f'SELECT DISTINCT "{column}" FROM listed WHERE "{column}" > \'\' ORDER BY 1'  # noqa: S608 - it is one of TEXTS
    with index.use() as connection:
        return [value for (value,) in connection.execute(sql)]


def check_names(index: Index, names: Iterable[str]) -> None:
    """FlagPerfError where one of them is neither a column nor FlagPerf's figure nor one that a round has."""
    unknown = [name for name in names if name not in COLUMNS and name not in DEFINITIONS]
    there = dict.fromkeys((*COLUMNS, *DEFINITIONS, *figure_names(index))) if unknown else {}
    for name in unknown:
        if name not in there:
            of_compare = "; it is of `compare` alone" if _is_derived(name) else ""
            names_there = f"there are, the nearest first: {', '.join(nearest_first(name, there))}"
            remedy = " ".join(filter(None, (nearest(name, there), names_there)))
            raise FlagPerfError(f"there is no column and no figure {name!r}{of_compare}", remedy=remedy)


def _is_derived(name: str) -> bool:
    """Whether a comparison has a figure of this name, which no round has by itself."""
    from run_benchmarks.comparison.derived import NAMES  # it loads much, for an error

    return name in NAMES


def count(index: Index, query: Query) -> int:
    """How many rows there are, whatever the query's limit."""
    where, values = _where(index, query.conditions)
    with index.use() as connection:
        (number,) = connection.execute(f"SELECT count(*) FROM listed {where}", values).fetchone()  # noqa: S608
    return int(number)


def select(index: Index, query: Query) -> list[Row]:
    """The rows.

    Raises:
        FlagPerfError: the query names what there is not, or compares a text with a number.
    """
    where, values = _where(index, query.conditions)
    order, order_values = _order(index, query.sort)
    limit = (-1 if query.limit is None else query.limit, query.offset)
    sql = f"SELECT * FROM listed {where} {order} LIMIT ? OFFSET ?"  # noqa: S608 - made of the words of this module
    with index.use() as connection:
        return [_row(row) for row in connection.execute(sql, (*values, *order_values, *limit))]


def _row(row: sqlite3.Row) -> Row:
    """What is null in the table, for a run that has no round, is an empty text."""
    values: dict[str, Any] = {name: row[name] for name in ("key", *NUMBERS)}
    values |= {name: row[name] or "" for name in (*TEXTS, STARTED)}
    return Row(
        **values, notes=tuple(json.loads(row["notes"])), figures=_FIGURES.decode(row["figures"] or "{}")
    )


def _where(index: Index, conditions: Sequence[Condition]) -> tuple[str, list[object]]:
    if len(conditions) > MOST_CONDITIONS:
        raise FlagPerfError(
            f"{len(conditions)} conditions are more than {MOST_CONDITIONS}", remedy="leave some out"
        )
    check_names(index, [condition.name for condition in conditions])
    clauses = [_clause(condition) for condition in conditions]
    for number, condition in enumerate(conditions):
        if condition.name not in COLUMNS:
            _check_unit(index, condition, [*clauses[:number], *clauses[number + 1 :]])
    return _joined(clauses)


def _joined(clauses: Sequence[Clause]) -> tuple[str, list[object]]:
    values = [value for _, of_clause in clauses for value in of_clause]
    return f"WHERE {' AND '.join(sql for sql, _ in clauses)}" if clauses else "", values


def _clause(condition: Condition) -> Clause:
    if condition.name in TEXTS:
        return _text_clause(condition)
    if condition.sign == "~":
        raise FlagPerfError(f"{condition.name} is a number, which holds no text", remedy=FORM)
    return _number_clause(condition) if condition.name in COLUMNS else _figure_clause(condition)


def _check_unit(index: Index, condition: Condition, others: Sequence[Clause]) -> None:
    """Refuse a number without its unit where the rounds that the others leave have several, and one with another."""
    where, values = _joined(others)
    sql = f"SELECT DISTINCT {_FULL_UNIT_OF_FIGURE} FROM listed {where}"  # noqa: S608 - made of the words of this module
    with index.use() as connection:
        rows = connection.execute(sql, (condition.name, *values)).fetchall()
    units = sorted(each for (each,) in rows if each is not None)
    _, unit = _number_of(condition)
    if units and (unit not in units if unit else len(units) > 1):
        number = condition.value.split(" ")[0]
        examples = " or ".join(
            f'"{condition.name} {condition.sign} {number} {each}"' for each in units[:MOST_UNITS]
        )
        what = f"{unit} is not what it is measured in" if unit else "it is not measured in one unit"
        message = f"{condition.name} {condition.sign} {condition.value}: {what}"
        raise FlagPerfError(message, remedy=f'write {examples}, or name the case ("case ~ ...")')


def _text_clause(condition: Condition) -> Clause:
    if condition.sign not in _SIGNS_OF_TEXT:
        message = f"{condition.name} is a text, which is not {condition.sign} anything"
        raise FlagPerfError(message, remedy=f"compare it by one of {' '.join(_SIGNS_OF_TEXT)}")
    column, value = _OF_COLUMN[condition.name], one_line(condition.value)  # as the index holds texts
    if condition.sign == "~":
        return f"instr(lower({column}), lower(?)) > 0", [value]
    return f"{column} IS {'NOT ' if condition.sign == '!=' else ''}?", [value]


def _number_clause(condition: Condition) -> Clause:
    column = _OF_COLUMN[condition.name]
    if condition.name == STARTED:
        return f"{column} {condition.sign} julianday(?)", [moment_of(condition.value).isoformat()]
    return f"{column} {condition.sign} ?", [_number_of(condition)[0]]


def _figure_clause(condition: Condition) -> Clause:
    number, unit = _number_of(condition)
    sql, values = f"{_OF_FIGURE} {condition.sign} ?", [condition.name, number]
    return (
        (f"{sql} AND {_FULL_UNIT_OF_FIGURE} = ?", [*values, condition.name, unit]) if unit else (sql, values)
    )


def _number_of(condition: Condition) -> tuple[float, str]:
    """Its number, and the unit behind it, if there is one."""
    match = _NUMBER.fullmatch(condition.value)
    try:
        value = float(match[1]) if match else math.nan
    except ValueError:
        value = math.nan
    if not match or not math.isfinite(value) or (match[2] and condition.name in COLUMNS):
        raise FlagPerfError(f"{condition.name}: {condition.value!r} is no number", remedy=FORM)
    return value, match[2] or ""


def _order(index: Index, sort: str) -> tuple[str, list[object]]:
    """Rows without a value come last, whichever way it goes; values of a figure stand by what they are of."""
    name = sort.removeprefix("-")
    check_names(index, [name])
    way = "DESC" if sort.startswith("-") else "ASC"
    rest = f'{_OF_COLUMN[STARTED]} DESC, listed.key DESC, listed."case", listed.round'
    if name in _OF_COLUMN:
        return f"ORDER BY {_OF_COLUMN[name]} IS NULL, {_OF_COLUMN[name]} {way}, {rest}", []
    return f"ORDER BY {_OF_FIGURE} IS NULL, {_FULL_UNIT_OF_FIGURE}, {_OF_FIGURE} {way}, {rest}", [name] * 3


def moment_of(text: str) -> datetime:
    """A date, a time (this machine's where it has no offset), or so many hours or days ago: `12h`, `7d`."""
    age = _AGE.fullmatch(text)
    try:
        if age:
            return datetime.now().astimezone() - timedelta(
                **{{"h": "hours", "d": "days"}[age[2]]: int(age[1])}
            )
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        message = f"{text!r} is no time"
        raise FlagPerfError(message, remedy="2026-11-20, 2026-11-20T09:30, or an age: 12h, 7d") from error
