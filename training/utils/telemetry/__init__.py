"""Telemetry: what the monitors write on every node, and the figures that are computed from it.

`records` holds the values, `lines` their form on disk, `reading` the way back, and `windows` the
figures over a span of wall-clock time. Callers import from here.
"""

from utils.telemetry.lines import (
    TELEMETRY_FILE,
    device_log,
    note_line,
    record_line,
    value_log,
)
from utils.telemetry.reading import (
    read_telemetry,
)
from utils.telemetry.records import Measurement, Sample, Scope, SourceInfo, Telemetry, Window
from utils.telemetry.windows import (
    average_power,
    best_power_source,
    energy_over,
    max_power,
)

__all__ = [
    "TELEMETRY_FILE",
    "Measurement",
    "Sample",
    "Scope",
    "SourceInfo",
    "Telemetry",
    "Window",
    "average_power",
    "best_power_source",
    "device_log",
    "energy_over",
    "max_power",
    "note_line",
    "read_telemetry",
    "record_line",
    "value_log",
]
