"""A table as text for a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from run_benchmarks.results.markdown import inline, table_row
from utils.text_files import filled, one_line, shortened

NOT_MEASURED = "-"
# Characters: each row is made as wide as the widest, of which a stranger's could fill the memory.
LONGEST_CELL = 2**13
MARK = "*"  # behind a value: a note below the table says what to know of it


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
        return "\n".join([whole, *(filled(note, width or len(note), "") for note in self.footnotes)])

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


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as text, columns aligned."""
    if not rows:
        return ""
    rows = [[one_line(shortened(cell, LONGEST_CELL)) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _width(text: str) -> int:
    return max(map(len, text.splitlines()))
