"""The chart of two figures of many rounds."""

from __future__ import annotations

from collections.abc import Sequence

from run_benchmarks.history.query import Row
from run_benchmarks.report.chart import Axis, Chart, Line


def scatter(rows: Sequence[Row], x: str, y: str) -> Chart:
    """A point a round, a colour a case; every row has both figures."""
    rows = sorted(rows, key=lambda row: row.figures[x].value)
    names = [f"{row.run}, round {row.round}, {row.verdict}" for row in rows]
    lines = [
        Line(case, [row.figures[y].value if row.case == case else None for row in rows], names=names)
        for case in dict.fromkeys(row.case for row in rows)
    ]
    axis = Axis(x, [row.figures[x].value for row in rows], _unit(rows, x))
    return Chart(f"{y} against {x}", _unit(rows, y), [axis], lines, is_scatter=True)


def _unit(rows: Sequence[Row], name: str) -> str:
    """The figure's unit, where all rows agree on it."""
    units = {row.figures[name].unit for row in rows}
    return units.pop() if len(units) == 1 else ""
