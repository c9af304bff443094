"""A comparison as text for a terminal and as Markdown."""

from __future__ import annotations

from run_benchmarks.comparison.pareto import Picture
from run_benchmarks.comparison.records import Comparison
from run_benchmarks.comparison.view import Heading, Lines, Tabular, blocks
from run_benchmarks.results.markdown import inline, listed
from run_benchmarks.results.table import Table
from utils.numbers import shown
from utils.text_files import filled, one_line


def as_text(comparison: Comparison, width: int | None) -> str:
    """For a terminal, in lines of `width` characters where that can be (None: no limit)."""
    parts = []
    for block in blocks(comparison, is_brief=True):
        if isinstance(block, Heading):
            parts.append(f"{'=' * (3 - block.level)} {one_line(block.text)}".strip())
        elif isinstance(block, Lines):
            parts.append("\n".join(_filled(f"- {line}", width) for line in block.lines))
        else:
            parts.append(table_of(block).text(width))
    return "\n\n".join(filter(None, parts))


def as_markdown(comparison: Comparison) -> str:
    """The same as Markdown."""
    parts = []
    for block in blocks(comparison, is_brief=False):
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {inline(block.text)}")
        elif isinstance(block, Lines):
            parts.append(listed(block.lines))
        else:
            parts.append(table_of(block).markdown())
    return "\n\n".join(filter(None, parts)) + "\n"


def table_of(block: Tabular) -> Table:
    """The table that a block is, has, or stands for."""
    if isinstance(block, Table):
        return block
    return _picture_table(block) if isinstance(block, Picture) else block.table


def _picture_table(picture: Picture) -> Table:
    """What a picture shows."""
    headings = (
        picture.title,
        picture.x_label,
        f"{picture.y_label} ({picture.y_unit})",
        "dominated, by means",
    )
    rows = tuple(
        (each.side, shown(each.x), shown(each.y), "no" if each.is_best else "yes") for each in picture.points
    )
    return Table(headings, rows, fixed=1)


def _filled(line: str, width: int | None) -> str:
    text = one_line(line)
    return filled(text, width, "  ") if width else text
