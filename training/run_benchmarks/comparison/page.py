"""A comparison as one HTML file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from run_benchmarks.comparison.pareto import Picture
from run_benchmarks.comparison.records import Comparison
from run_benchmarks.comparison.view import Block, Heading, blocks, picture_table
from run_benchmarks.report.chart import Axis, Chart, Line, chart
from run_benchmarks.report.page import environment, page

if TYPE_CHECKING:
    from markupsafe import Markup


def comparison_page(comparison: Comparison, *, is_served: bool = False) -> str:
    """The whole file. is_served: see `report.page.page`."""
    from markupsafe import Markup

    title = next(each.text for each in blocks(comparison, is_brief=False) if isinstance(each, Heading))
    body = Markup("\n").join(_parts(comparison))
    return page(title, body, is_served=is_served)


def _parts(comparison: Comparison) -> Iterator[Markup]:
    for block in blocks(comparison, is_brief=False):
        if isinstance(block, Picture):
            yield chart(_scatter(block))
            yield _markup(picture_table(block))
        else:
            yield _markup(block)


def _markup(block: Block) -> Markup:
    from markupsafe import Markup

    template = environment(Path(__file__).parent / "templates").get_template("block.html")
    text = template.render(block=block, kind=type(block).__name__)
    return Markup(text)  # noqa: S704 - a template with autoescape made it


def _scatter(picture: Picture) -> Chart:
    """A point a side; each is a line of its own, and has a colour."""
    points = picture.points
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
        note=f"{picture.y_label} against {picture.x_label}, means over rounds; not beaten in both: "
        + ", ".join(point.side for point in points if point.is_best),
        is_scatter=True,
    )
