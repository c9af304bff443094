"""A run as CSV (RFC 4180, UTF-8): its figures, a row each, and each round's curves, a row a point."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from run_benchmarks.report.curves import STEP_CURVES, Curves
from run_benchmarks.report.rounds import curves_in
from run_benchmarks.results.folder import RunFolder
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.summary import Run
from run_benchmarks.results.telemetry_result import RoundTelemetry, SourceTelemetry
from utils.text_files import printable
from utils.writing import whole_file

FIGURES = "figures.csv"
TELEMETRY = "telemetry.csv"
TELEMETRY_COLUMNS = (
    "case", "round", "node", "host", "source", "scope", "device", "phase", "figure", "value", "unit", "coverage", "by"
)  # fmt: skip
FIGURE_COLUMNS = (
    "case", "round", "verdict", "rules", "figure", "value", "unit", "better", "window", "source", "coverage", "caveat"
)  # fmt: skip
Cell = str | float | int | None


def write_csv(folder: Path, run_folder: RunFolder, run: Run, hide: Callable[[str], str]) -> list[Path]:
    """Write `figures.csv`, `telemetry.csv` and a file a round that has curves into a folder; the files.

    Args:
        hide: what takes the run's secrets out of a text that a log says.

    Raises:
        OSError: they cannot be written.
    """
    written = [_write(folder / FIGURES, FIGURE_COLUMNS, figure_rows(run.results))]
    if any(result.telemetry and result.telemetry.nodes for result in run.results):
        written.append(_write(folder / TELEMETRY, TELEMETRY_COLUMNS, telemetry_rows(run.results)))
    for number, result in enumerate(run.results, 1):
        case = run_folder.cases.get(result.case)
        curves, _ = curves_in(result, run_folder.folder_of(result), case)
        if curves.steps["time_ms"] or curves.evaluations:
            name = f"curves_{number}_round{result.round}.csv"
            columns = ("case", "round", "event", *curves.steps, hide(curves.metric))
            written.append(_write(folder / name, columns, curve_rows(result, curves)))
    return written


def figure_rows(results: Iterable[RoundResult]) -> Iterator[tuple[Cell, ...]]:
    """A row a figure of a round; what was not measured has no value, and its source says why."""
    for result in results:
        head = (result.case, result.round, result.verdict.value, result.rules.stamp)
        for name, each in result.figures.items():
            about = (each.unit, each.better, each.window, each.source, each.coverage, each.caveat)
            yield (*head, name, each.value, *about)


def telemetry_rows(results: Iterable[RoundResult]) -> Iterator[tuple[Cell, ...]]:
    """A row a number of `telemetry`: of a source as a whole, of each phase, of each device.

    phase: empty for all of the training, or as the figure's own window says.
    """
    for result in results:
        telemetry = result.telemetry
        for node, each in enumerate(telemetry.nodes if telemetry else ()):
            host = result.hosts[node] if node < len(result.hosts) else ""
            for source, of_source in each.sources.items():
                head = (result.case, result.round, node, host, source, of_source.scope.value)
                yield from ((*head, *row) for row in _source_rows(of_source, telemetry))


def _source_rows(source: SourceTelemetry, telemetry: RoundTelemetry | None) -> Iterator[tuple[Cell, ...]]:
    units = {name: each.unit for name, each in telemetry.figures.items()} if telemetry else {}
    for name, each in source.figures.items():
        yield "", "", name, each.value, units.get(name), each.coverage, each.source
    for phase, power in source.phases.items():
        for name, each in (("energy", power.energy), ("avg_power", power.avg_power)):
            yield "", phase.value, name, each.value, units.get(name), each.coverage, each.source
    for name, column in source.of_devices.items():
        for device, value, coverage in zip(source.devices, column.values, column.coverage, strict=False):
            yield device, "", name, value, units.get(name), coverage, ""


def curve_rows(result: RoundResult, curves: Curves) -> Iterator[tuple[Cell, ...]]:
    """A row a step, then a row an evaluation."""
    head = (result.case, result.round)
    nothing = (None,) * len(STEP_CURVES)
    for time_ms, *values in zip(*curves.steps.values(), strict=True):
        yield (*head, "STEP_END", int(time_ms), *map(_value, values), None)
    for time_ms, step, value in curves.evaluations:
        yield (*head, "EVALUATE", int(time_ms), _value(step), *nothing, _value(value))


def _value(number: float) -> float | int | None:
    if math.isnan(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Path:
    with whole_file(path) as binary, io.TextIOWrapper(binary, encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(map(_cell, columns))
        writer.writerows(map(_cell, row) for row in rows)
    return path


def _cell(cell: Cell) -> Cell:
    """A text that a spreadsheet would take for a formula gets an apostrophe (OWASP, CSV injection)."""
    if not isinstance(cell, str):
        return cell
    text = printable(cell)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
