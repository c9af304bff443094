"""Times in which a source that should have been read was not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from run_benchmarks.results.spans import LEAST_GAP_MS
from run_benchmarks.results.telemetry_result import NodeTelemetry
from utils.numbers import counted
from utils.telemetry.power_sources import interval_ms, metered_series
from utils.telemetry.records import Telemetry, Window
from utils.telemetry.series import ENERGY, POWER, Series

# Of a source that is read more seldom than once in 2 s: at the half, so that one that comes late is no gap.
GAP_INTERVALS = 1.5


@dataclass(frozen=True)
class Gap:
    """A time without power or energy of a device, in ms; the window's edges count as readings."""

    device: str
    start_ms: int
    end_ms: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ms - self.start_ms) / 1000


def gaps_in(telemetry: Telemetry, window: Window, source: str) -> Iterator[Gap]:
    """The gaps of the source's devices that are longer than 3 s, and in which a reading is missing."""
    least = max(LEAST_GAP_MS, GAP_INTERVALS * interval_ms(telemetry, source))
    for device, series in metered_series(telemetry, source).items():
        inside = _read_at(series.between(window.start_ms, window.end_ms))
        for start, end in pairwise(chain((window.start_ms,), inside, (window.end_ms,))):
            if end - start > least:
                yield Gap(device, start, end)


def _read_at(series: Series) -> Sequence[int]:
    columns = [column for name in (POWER, ENERGY) if (column := series.columns.get(name))]
    if not columns:
        return ()
    rows = zip(series.times_ms, *columns, strict=True)
    return [time_ms for time_ms, *values in rows if any(value >= 0 for value in values)]


def gap_doubts(node: NodeTelemetry) -> Iterator[tuple[str, str]]:
    """Each source of power that was silent for long while it trained, and since when."""
    for source, each in node.sources.items():
        if each.gaps:
            first, count = each.gaps[0], len(each.gaps) + each.more_gaps
            more = f", and {counted(count - 1, 'more gap')}" if count > 1 else ""
            which = f"{source} {first.device}".strip()
            since = f"from {first.start_s:.4g} s after TRAIN_START on"
            yield f"gap of {source}", f"{which} was not read for {first.seconds:.3g} s, {since}{more}"
