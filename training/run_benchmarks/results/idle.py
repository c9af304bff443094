"""What a node draws while nothing of the run works on it."""

from __future__ import annotations

from utils.telemetry.power_sources import WITH_POWER
from utils.telemetry.records import Telemetry, Window

# Of a shorter time before the ranks a reading of the first load would be a part.
LEAST_IDLE_S = 2.0


def idle_window(telemetry: Telemetry, ranks_start_ms: float | None, source: str = "") -> Window | str:
    """From the first reading of power until the node's first rank was started, or the reason why there is none.

    source: that is read; by default any.
    """
    if ranks_start_ms is None:
        return "nothing tells when the first rank was started: INIT_START has no `ranks_start_ms`"
    firsts = [
        series.times_ms[0]
        for info in telemetry.sources
        for series in telemetry.series(info.source).values()
        if info.scope in WITH_POWER and series.times_ms and source in ("", info.source)
    ]
    if not firsts:
        return "no power was read"
    idle_s = (ranks_start_ms - min(firsts)) / 1000
    if idle_s < LEAST_IDLE_S:
        return (
            f"power was read for {max(0.0, idle_s):.3g} s before the first rank, less than {LEAST_IDLE_S:g} s"
        )
    return Window(min(firsts), int(ranks_start_ms))
