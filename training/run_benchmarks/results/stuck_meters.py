"""Meters of a machine that tell one value all the time: no other source need be there that contradicts them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from run_benchmarks.results.telemetry_result import MOST_SOURCES
from utils.numbers import counted
from utils.telemetry.records import Scope, Telemetry, Window
from utils.telemetry.series import POWER, Series

# The power of a machine moves by some watts in that time, whatever it does; of a coarse meter it may not.
LEAST_READINGS, LEAST_MS = 10, 30_000


def standing_still(telemetry: Telemetry, training: Window) -> Iterator[tuple[str, str]]:
    """Each such source, and what a reader must know of it."""
    for source in telemetry.with_scope(Scope.MACHINE)[:MOST_SOURCES]:
        devices = telemetry.series(source)
        told = {device: text for device, series in devices.items() if (text := _only_value(series, training))}
        if told:
            first = next(iter(told))
            others = f" (and {counted(len(told) - 1, 'other device')})" if len(told) > 1 else ""
            text = "from before the training on: see whether the meter is read anew"
            which = f"{source} {first}".strip()
            yield f"{source} stands still", f"{which}{others} has told the same value {told[first]}, {text}"


def _only_value(series: Series, training: Window) -> str:
    """The one value of all readings up to the training's end, and how often it was told; or nothing."""
    times, watts = np.frombuffer(series.times_ms, dtype=np.int64), np.frombuffer(series.column(POWER))
    is_read = (watts >= 0) & (times <= training.end_ms)
    times, watts = times[is_read], watts[is_read]
    if len(times) < LEAST_READINGS or times[-1] - times[0] < LEAST_MS or (watts != watts[0]).any():
        return ""
    is_through = times[0] < training.start_ms <= times[-1]
    return f"{len(times)} times ({watts[0]:g} W)" if is_through else ""
