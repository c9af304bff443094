"""What an address of the site asks for: the filters of a page, as its form has them, and the query that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from urllib.parse import urlencode

from run_benchmarks.history.listing import is_number
from run_benchmarks.history.query import STARTED, Condition, Query, condition_of

CHOICES = ("case", "verdict", "state")
PAGE = 100  # rows
NEWEST_FIRST = f"-{STARTED}"


@dataclass(frozen=True)
class Asked:
    """The values of the form; an empty one asks for nothing. where: conditions, with semicolons between them.

    columns: with commas between them. x, y: the figures of the chart. page: a whole number from 0.
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
    page: str = "0"

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Asked:
        """What the parameters of an address say; those that mean nothing here are passed over."""
        words = {each.name: values[each.name] for each in fields(cls) if values.get(each.name)}
        page = words.pop("page", "")
        return cls(**words, page=page if page.isascii() and page.isdigit() and len(page) < 7 else "0")

    def query(self) -> Query:
        """The query, of all rows; FlagPerfError where a condition is none."""
        conditions = [condition_of(part) for part in self.where.split(";") if part.strip()]
        conditions += [Condition(name, "=", value) for name in CHOICES if (value := asdict(self)[name])]
        conditions += [Condition(STARTED, ">=", self.since)] if self.since else []
        return Query(tuple(conditions), self.sort)

    def query_of_page(self) -> Query:
        """The same, of the rows of this page."""
        return replace(self.query(), limit=PAGE, offset=int(self.page) * PAGE)

    def order_by(self, column: str) -> str:
        """The order that its heading leads to: first the largest number or the first text, then the other way round."""
        largest_first = is_number(column) or column == STARTED
        first, second = (f"-{column}", column) if largest_first else (column, f"-{column}")
        return second if self.sort == first else first

    def address(self, path: str, **changes: object) -> str:
        """The address of the same with changes; a change of the order or the filters begins at the first page."""
        values = {**asdict(self), "page": "0", **changes}
        words = {name: value for name, value in values.items() if value not in ("", "0", NEWEST_FIRST)}
        return f"{path}?{urlencode(words)}" if words else path
