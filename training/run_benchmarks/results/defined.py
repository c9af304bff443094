"""Figures read back: what the registry says of them, whatever stands in the file."""

from __future__ import annotations

from dataclasses import replace

from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.power import NAMES as POWER
from run_benchmarks.results.quality import better_of, falls
from utils.figures import DEFINITIONS, HIGHER, LOWER, Figure


def defined(name: str, figure: Figure, case: PlannedCase | None, scope: str) -> Figure:
    """The figure, of which the registry says the unit and which way is better, whatever stands in the file.

    Those of schema 1 have no definition; early ones say in the sources of power alone of which `scope` it is.
    """
    own = figure.better if figure.better in (HIGHER, LOWER) else None
    definition = DEFINITIONS.get(name)
    if definition is None:
        return replace(figure, better=own)
    better = definition.better
    if definition.of_metric:
        better = better_of(case, figure.unit) if case else _as_written(own, figure.unit)
    unit = (
        figure.unit if definition.unit == "1" else definition.unit
    )  # a metric's name, or what a loss was in earlier
    text = figure.definition or definition.definition
    figure = replace(figure, better=better, unit=unit, definition=text)
    is_power = name in POWER and figure.value is not None
    return replace(figure, scope=figure.scope or scope) if is_power else figure


def _as_written(better: str | None, metric: str) -> str | None:
    """Which way a metric is better where no plan tells of its case: early results had the larger for better of any."""
    return None if falls(metric) and better != LOWER else better or HIGHER
