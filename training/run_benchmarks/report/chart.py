"""A chart of lines or points: what it shows, and the HTML that `static/charts.js` draws it from.

The values stand in the page as JSON; behind each chart is a table of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from run_benchmarks.report.page import rendered
from utils.text_files import one_line

if TYPE_CHECKING:
    from markupsafe import Markup

TIME = "s"  # the unit of an axis that is shown as hours, minutes and seconds
DIGITS = 5  # significant ones of a value in the page: a line of the screen has fewer places


@dataclass(frozen=True)
class Axis:
    """What a chart runs over, ascending. unit: TIME for seconds since the beginning."""

    label: str
    values: Sequence[float]
    unit: str = ""


@dataclass(frozen=True)
class Extent:
    """What a line comes to, of all of its values and not of those alone that are drawn."""

    count: int
    least: float
    mean: float
    greatest: float


@dataclass(frozen=True)
class Line:
    """A line, or a set of points. values: by place on the axis, None where there is none.

    group: lines of one group have one colour where all groups are shown. names: of each point, shown where it is
    pointed at. extent: None to reckon it from `values`.
    """

    label: str
    values: Sequence[float | None]
    group: str = ""
    names: Sequence[str] = ()
    extent: Extent | None = None

    @property
    def full_label(self) -> str:
        """The label behind the group's name, as the page's script writes it too: of a host's CPU which host's."""
        return f"{self.group} {self.label}" if self.group not in ("", self.label) else self.label

    def summed_up(self) -> Extent | None:
        """Its extent; None where it has no value."""
        there = [value for value in self.values if value is not None]
        if self.extent or not there:
            return self.extent
        return Extent(len(there), min(there), sum(there) / len(there), max(there))


@dataclass(frozen=True)
class Phase:
    """A part of the time axis that is shaded; `kind` is one of idle, init, warm_up, train, evaluate, checkpoint."""

    kind: str
    start: float
    end: float


@dataclass(frozen=True)
class Chart:
    """A chart. Each line has as many values as each axis; a reader switches between the axes.

    unit: of the values; levels: horizontal lines by name (a target). link: charts of one link share cursor and zoom.
    note: what a reader must know of it. end: a time axis is shown from 0 to here, whatever the values cover.
    is_from_zero: the scale begins at 0. is_scatter: points without lines.
    """

    title: str
    unit: str
    axes: Sequence[Axis]
    lines: Sequence[Line]
    phases: Sequence[Phase] = ()
    levels: Sequence[tuple[str, float]] = ()
    link: str = ""
    note: str = ""
    end: float | None = None
    is_from_zero: bool = False
    is_scatter: bool = False


def scatter(
    title: str, x: tuple[str, str], unit: str, points: Sequence[tuple[str, str, float, float]], note: str = ""
) -> Chart:
    """A chart of points, each of a set, which has a colour.

    x: label and unit of the axis; unit: of the values; points: set, name, place on the axis, value.
    """
    points = sorted(points, key=lambda point: point[2])
    names = [name for _, name, _, _ in points]
    lines = [
        Line(each, [value if owner == each else None for owner, _, _, value in points], names=names)
        for each in sorted({owner for owner, _, _, _ in points})
    ]
    label, axis_unit = x
    axis = Axis(label, [place for _, _, place, _ in points], axis_unit)
    return Chart(title, unit, [axis], lines, note=note, is_scatter=True)


def chart(what: Chart) -> Markup:
    """The chart as a part of a page; a sentence where none of its lines has a value."""
    extents = [(line, extent) for line in what.lines if (extent := line.summed_up())]
    return rendered("chart.html", chart=what, extents=extents, content=content(what))


def content(what: Chart) -> dict[str, Any]:
    """What the script draws."""
    return {
        "title": one_line(what.title),
        "unit": what.unit,
        "axes": [{"label": each.label, "unit": each.unit, "values": each.values} for each in what.axes],
        "lines": [
            {
                "label": one_line(each.label),
                "group": one_line(each.group),
                "names": list(map(one_line, each.names)),
                "values": _rounded(each.values),
            }
            for each in what.lines
        ],
        "phases": [[each.kind, each.start, each.end] for each in what.phases],
        "levels": what.levels,
        "link": what.link,
        "end": what.end,
        "fromZero": what.is_from_zero,
        "scatter": what.is_scatter,
    }


def _rounded(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else float(f"{value:.{DIGITS}g}") for value in values]
