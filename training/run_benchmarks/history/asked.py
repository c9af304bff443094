"""What an address of the site asks for: the filters of a page, as its form has them, and the query that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from run_benchmarks.history.query import Condition, Query, condition_of

CHOICES = ("case", "verdict", "state")
PAGE = 100  # rows
NEWEST_FIRST = "-started"


@dataclass(frozen=True)
class Asked:
    """The values of the form; an empty one asks for nothing. where: conditions, with semicolons between them.

    columns: with commas between them. x, y: the figures of the chart. page: from 0.
    """

    case: str = ""
    verdict: str = ""
    state: str = ""
    since: str = ""
    where: str = ""
    columns: str = ""
    sort: str = NEWEST_FIRST
    x: str = ""
    y: str = ""
    page: int = 0

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Asked:
        """What the parameters of an address say; those that mean nothing here are passed over."""
        words: dict[str, Any] = {
            each.name: values[each.name] for each in fields(cls) if values.get(each.name)
        }
        number = words.pop("page", "")
        page = int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 0
        return cls(**words, page=page)

    def query(self) -> Query:
        """The query, of all rows; FlagPerfError where a condition is none."""
        conditions = [condition_of(part) for part in self.where.split(";") if part.strip()]
        conditions += [Condition(name, "=", value) for name in CHOICES if (value := str(getattr(self, name)))]
        if self.since:
            conditions.append(Condition("started", ">=", self.since))
        return Query(tuple(conditions), self.sort)

    def query_of_page(self) -> Query:
        """The same, of the rows of this page."""
        return replace(self.query(), limit=PAGE, offset=self.page * PAGE)

    def address(self, path: str, **changes: object) -> str:
        """The address of the same with changes; a change of the order or the filters begins at the first page."""
        values = {each.name: getattr(self, each.name) for each in fields(self)} | {"page": 0} | changes
        words = {name: value for name, value in values.items() if value not in ("", 0, NEWEST_FIRST)}
        return f"{path}?{urlencode(words)}" if words else path
