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
from utils.errors import FlagPerfError, nearest
from utils.figures import DEFINITIONS
from utils.text_files import one_line

TEXTS = ("run", "uid", "state", "case", "verdict", "rules", "kind", "hosts")
NUMBERS = ("round", "exit_code")
STARTED = "started"
COLUMNS = (*TEXTS, *NUMBERS, STARTED)
FORM = (
    "a condition is NAME, a sign (= != ~ < <= > >=) and a value: "
    '"p_train > 100", "case ~ bert", "started >= 2026-11-01"'
)
_CONDITION = re.compile(r"\s*(\w+)\s*(<=|>=|!=|==|=|<|>|~)\s*(.*?)\s*", re.ASCII | re.DOTALL)
_AGE = re.compile(r"(\d{1,6})([hd])", re.ASCII)
_SIGNS_OF_TEXT = ("=", "!=", "~")
_OF_COLUMN = {
    **{name: f'listed."{name}"' for name in (*TEXTS, *NUMBERS)},
    STARTED: "julianday(listed.started)",
}
_OF_FIGURE = "(SELECT json_extract(value, '$.value') FROM json_each(listed.figures) WHERE key = ?)"
_UNIT_OF_FIGURE = _OF_FIGURE.replace("$.value", "$.unit")


@dataclass(frozen=True)
class Condition:
    """`name sign value`; sign `~`: the text holds it, whichever case its letters have."""

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
    """A figure of a listed round."""

    value: float
    unit: str
    caveat: str


_FIGURES = msgspec.json.Decoder(dict[str, Measured])  # of thousands of rows


@dataclass(frozen=True)
class Row:
    """A round, or a run that has none (`case` and `verdict` are empty then). notes: of its run."""

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
    there = (*COLUMNS, *DEFINITIONS, *figure_names(index)) if unknown else ()
    for name in unknown:
        if name not in there:
            remedy = nearest(name, there) or f"there are {', '.join(dict.fromkeys(there))}"
            raise FlagPerfError(f"there is no column and no figure {name!r}", remedy=remedy)


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
    check_names(index, [condition.name for condition in conditions])
    parts: list[str] = []
    values: list[object] = []
    for condition in conditions:
        part, of_part = _text_part(condition) if condition.name in TEXTS else _number_part(condition)
        parts.append(part)
        values += of_part
    return f"WHERE {' AND '.join(parts)}" if parts else "", values


def _text_part(condition: Condition) -> tuple[str, list[object]]:
    if condition.sign not in _SIGNS_OF_TEXT:
        message = f"{condition.name} is a text, which is not {condition.sign} anything"
        raise FlagPerfError(message, remedy=f"compare it by one of {' '.join(_SIGNS_OF_TEXT)}")
    column, value = _OF_COLUMN[condition.name], one_line(condition.value)  # as the index holds texts
    if condition.sign == "~":
        return f"instr(lower({column}), lower(?)) > 0", [value]
    return f"{column} IS {'NOT ' if condition.sign == '!=' else ''}?", [value]


def _number_part(condition: Condition) -> tuple[str, list[object]]:
    if condition.sign == "~":
        raise FlagPerfError(f"{condition.name} is a number, which holds no text", remedy=FORM)
    sql, values = _value_of(condition.name)
    if condition.name == STARTED:
        return f"{sql} {condition.sign} julianday(?)", [moment_of(condition.value).isoformat()]
    return f"{sql} {condition.sign} ?", [*values, _number_of(condition)]


def _value_of(name: str) -> tuple[str, list[object]]:
    """SQL for a column or a figure of a row, and its parameters."""
    return (_OF_COLUMN[name], []) if name in _OF_COLUMN else (_OF_FIGURE, [name])


def _number_of(condition: Condition) -> float:
    try:
        value = float(condition.value)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FlagPerfError(f"{condition.name}: {condition.value!r} is no number", remedy=FORM)
    return value


def _order(index: Index, sort: str) -> tuple[str, list[object]]:
    """Rows without a value come last, whichever way it goes; values of a case's own figure stand by their units."""
    name = sort.removeprefix("-")
    check_names(index, [name])
    sql, values = _value_of(name)
    way = "DESC" if sort.startswith("-") else "ASC"
    unit, of_unit = ("", []) if name in (*_OF_COLUMN, *DEFINITIONS) else (f"{_UNIT_OF_FIGURE}, ", [name])
    rest = f'{_OF_COLUMN[STARTED]} DESC, listed.key DESC, listed."case", listed.round'
    return f"ORDER BY {sql} IS NULL, {unit}{sql} {way}, {rest}", [*values, *of_unit, *values]


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
