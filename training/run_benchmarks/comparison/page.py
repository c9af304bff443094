"""A comparison as one HTML file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from run_benchmarks.comparison.forms import table_of
from run_benchmarks.comparison.pareto import Picture
from run_benchmarks.comparison.records import Against, Comparison
from run_benchmarks.comparison.view import KINDS, PLAIN, Heading, Lines, Ratios, blocks
from run_benchmarks.report.chart import Axis, Chart, Line, chart
from run_benchmarks.report.page import environment, page

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH = 160  # of the picture of a ratio
# How far its scale reaches from 1, as a logarithm: at least 5 %, at most a factor of 8.
SMALLEST, WIDEST = math.log(1.05), math.log(8)


def comparison_page(comparison: Comparison, *, is_served: bool = False) -> str:
    """The whole file. is_served: see `report.page.page`."""
    from markupsafe import Markup

    title = next(each.text for each in blocks(comparison, is_brief=False) if isinstance(each, Heading))
    body = Markup("\n").join(_parts(comparison))
    return page(title, body, is_served=is_served)


def _parts(comparison: Comparison) -> Iterator[Markup]:
    from markupsafe import Markup

    template = environment(Path(__file__).parent / "templates").get_template("block.html")
    for block in blocks(comparison, is_brief=False):
        if isinstance(block, Picture):
            yield chart(_scatter(block))
        text = template.render(
            kind=type(block).__name__,
            block=block,
            table=None if isinstance(block, (Heading, Lines)) else table_of(block),
            spans=_spans(block.against) if isinstance(block, Ratios) else [],
        )
        yield Markup(text)  # noqa: S704 - a template with autoescape made it


@dataclass(frozen=True)
class Span:
    """An interval on a scale of logarithms with 1 in its middle: ends and value, 0 to WIDTH; None for no picture.

    kind: good, bad or nothing, of what is shown.
    """

    kind: str
    low: float | None = None
    middle: float | None = None
    high: float | None = None


def _spans(several: Sequence[Against]) -> list[Span]:
    """A picture a ratio, all on one scale, which holds what can be read on it."""
    ratios = [each.ratio for each in several]
    ends = [end for ratio in ratios for end in (ratio.interval or (ratio.value or 1.0,)) if end > 0]
    reach = min(WIDEST, max([SMALLEST, *(abs(math.log(end)) for end in ends)]))

    def place(value: float) -> float:
        part = max(-1.0, min(1.0, math.log(value) / reach)) if value > 0 else -1.0
        return round(WIDTH / 2 * (1 + 0.95 * part), 1)

    spans = []
    for each in several:
        value, kind = each.ratio.value, KINDS.get(each.direction, PLAIN)
        low, high = each.ratio.interval or (value, value)
        missing = value is None or low is None or high is None
        spans.append(
            Span(kind) if missing else Span(kind, place(low or 0), place(value or 0), place(high or 0))
        )
    return spans


def _scatter(picture: Picture) -> Chart:
    """A point a side; each is a line of its own, and has a colour."""
    points = picture.points
    best = ", ".join(point.side for point in points if point.is_best)
    return Chart(
        title=picture.title,
        unit=picture.y_unit,
        axes=[Axis(picture.x_label, [point.x for point in points], picture.x_unit)],
        lines=[
            Line(
                point.side,
                [point.y if each is point else None for each in points],
                names=[each.side for each in points],
            )
            for point in points
        ],
        note=f"{picture.y_label} against {picture.x_label}, means over rounds; not dominated: {best}",
        is_scatter=True,
    )
