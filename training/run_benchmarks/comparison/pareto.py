"""Which sides no other one dominates in two figures: throughput against energy, time to target against chips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from run_benchmarks.comparison.derived import TOTAL_ENERGY
from run_benchmarks.comparison.ratios import Ratio
from run_benchmarks.comparison.records import CaseComparison
from utils.figures import DEFINITIONS

THROUGHPUT, TIME = "p_train", "time_to_target"
BASE = Ratio(1.0)  # against itself


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
    counts = {side.letter: side.chips[0] for side in case.sides if len(side.chips) == 1}
    chips = {letter: float(count) for letter, count in counts.items() if count}
    of_energy = ("Throughput against energy", THROUGHPUT, DEFINITIONS[THROUGHPUT].unit, TOTAL_ENERGY, "J")
    of_time = ("Time to target against chips", "chips", "", TIME, "s")
    made = [Picture(*of_energy, _points(rates, energy, sign=-1)), Picture(*of_time, _points(chips, times))]
    return [each for each in made if len(each.points) > 1]


def _means(case: CaseComparison, name: str) -> dict[str, float]:
    """Of the base, and of the sides that can be held against it."""
    row = next((row for row in case.rows if row.name == name), None)
    if row is None:
        return {}
    cells = {side: cell for side, cell in row.cells.items() if row.against.get(side, BASE).value is not None}
    return {side: cell.summary.mean for side, cell in cells.items() if cell.summary}


def _points(x: Mapping[str, float], y: Mapping[str, float], sign: int = 1) -> list[Point]:
    """The sides that have both. sign: 1 where x is to be little, as y always is; -1 where it is to be much."""
    costs = {side: (sign * x[side], y[side]) for side in x if side in y}
    best = {
        side
        for side, (first, second) in costs.items()
        if not any(a <= first and b <= second and (a, b) != (first, second) for a, b in costs.values())
    }
    return [Point(side, x[side], y[side], side in best) for side in sorted(costs, key=x.__getitem__)]
