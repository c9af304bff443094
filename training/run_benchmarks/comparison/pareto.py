"""Which sides no other one dominates in two figures: throughput against energy, time to target against chips."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from run_benchmarks.comparison.derived import TOTAL_ENERGY
from run_benchmarks.comparison.records import CaseComparison
from utils.figures import DEFINITIONS

THROUGHPUT, TIME = "p_train", "time_to_target"


@dataclass(frozen=True)
class Point:
    """A side of a case. x, y: means over its rounds. is_best: no other side is as good in both and better in one."""

    side: str
    x: float
    y: float
    is_best: bool


@dataclass(frozen=True)
class Picture:
    """Two figures of a case against each other, a point a side, in order of x."""

    title: str
    x_label: str
    x_unit: str
    y_label: str
    y_unit: str
    points: Sequence[Point]


def pictures(case: CaseComparison) -> list[Picture]:
    """The pictures for which at least two sides have what they need."""
    rates, energy, times = (_means(case, name) for name in (THROUGHPUT, TOTAL_ENERGY, TIME))
    chips = {
        side.letter: float(side.chips[0])
        for side in case.sides
        if len(side.chips) == 1 and side.chips[0] is not None
    }
    made = [
        Picture(
            "Throughput against energy",
            THROUGHPUT,
            DEFINITIONS[THROUGHPUT].unit,
            "energy of all nodes, training",
            "J",
            _points(rates, energy, is_more_better=True),
        ),
        Picture(
            "Time to target against chips",
            "chips",
            "",
            TIME,
            "s",
            _points(chips, times, is_more_better=False),
        ),
    ]
    return [each for each in made if len(each.points) > 1]


def _means(case: CaseComparison, name: str) -> dict[str, float]:
    row = next((row for row in case.rows if row.name == name), None)
    cells = row.cells if row else {}
    return {side: cell.summary.mean for side, cell in cells.items() if cell.summary}


def _points(x: Mapping[str, float], y: Mapping[str, float], *, is_more_better: bool) -> list[Point]:
    """The sides that have both, in order of x; costs are what is to be little."""
    sides = sorted((side for side in x if side in y), key=lambda side: x[side])
    costs = {side: (-x[side] if is_more_better else x[side], y[side]) for side in sides}
    return [Point(side, x[side], y[side], not _is_dominated(costs[side], costs.values())) for side in sides]


def _is_dominated(cost: tuple[float, float], others: Iterable[tuple[float, float]]) -> bool:
    return any(each != cost and each[0] <= cost[0] and each[1] <= cost[1] for each in others)
