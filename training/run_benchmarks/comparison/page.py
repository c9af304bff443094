"""A comparison as one HTML file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from run_benchmarks.comparison.forms import table_of
from run_benchmarks.comparison.pareto import Picture
from run_benchmarks.comparison.ratios import Ratio
from run_benchmarks.comparison.records import Comparison
from run_benchmarks.comparison.view import KINDS, PLAIN, Heading, Lines, Ratios, blocks
from run_benchmarks.report.chart import Chart, chart, scatter
from run_benchmarks.report.page import page, rendered

if TYPE_CHECKING:
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
# As logarithms: how far the scale of intervals reaches from 1 at the least, 5 %, and a factor that lies beyond any.
SMALLEST, WIDEST = math.log(1.05), math.log(8)


def comparison_page(comparison: Comparison, *, is_served: bool = False) -> str:
    """The whole file. is_served: see `report.page.page`."""
    from markupsafe import Markup

    title = f"Comparison with {next(iter(comparison.groups.values()))}"
    return page(title, Markup("\n").join(_parts(comparison)), is_served=is_served)


def _parts(comparison: Comparison) -> Iterator[Markup]:
    for block in blocks(comparison, is_brief=False):
        if isinstance(block, Picture):
            yield chart(_scatter(block))
        ratios = block.ratios if isinstance(block, Ratios) else ()
        grid = None if isinstance(block, (Heading, Lines)) else table_of(block)
        headings = [heading or "side" for heading in grid.headings] if grid else []
        yield rendered(
            "block.html",
            TEMPLATES,
            kind=type(block).__name__,
            block=block,
            grid=grid,
            headings=[*headings, *(["interval around 1"] if ratios else [])],
            words=[KINDS.get(each.direction, PLAIN) for each in ratios],
            spans=_spans(ratios),
        )


def _spans(ratios: Sequence[Ratio]) -> list[list[float] | None]:
    """Lower end, middle and upper end of each ratio on one scale, from -1 to 1, on which a ratio of 1 is at 0.

    A few wide intervals, which are drawn as arrows then, leave room for all others: they reach beyond the scale.
    """
    logs = [_logs(ratio) for ratio in ratios]
    reaches = [max(map(abs, ends)) for ends in logs if ends]
    reach = max(SMALLEST, 1.5 * median(reaches)) if reaches else SMALLEST
    return [[round(end / reach, 3) for end in ends] if ends else None for ends in logs]


def _logs(ratio: Ratio) -> list[float] | None:
    if ratio.value is None:
        return None
    low, high = ratio.interval or (ratio.value, ratio.value)
    smallest = math.exp(-WIDEST)
    return [min(WIDEST, math.log(max(smallest, each))) for each in (low, ratio.value, high)]


def _scatter(picture: Picture) -> Chart:
    """A point a side, each a set of its own."""
    best = ", ".join(point.side for point in picture.points if point.is_best)
    note = f"{picture.y_label} against {picture.x_label}, means over rounds; not dominated, whatever the noise: {best}"
    points = [(each.side, each.side, each.x, each.y) for each in picture.points]
    return scatter(picture.title, (picture.x_label, picture.x_unit), picture.y_unit, points, note)
