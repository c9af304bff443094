"""How telemetry stands on disk: FlagPerf's documented log lines, and one JSON object a tick: the readings of a moment.

The documented logs have second resolution and no energy counter, so figures are computed from
`telemetry.jsonl`; the logs are for people and for the tools that they already have.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from utils.telemetry.quantities import BY_NAME
from utils.telemetry.records import Sample, SourceInfo, Tick, ticks_of

TELEMETRY_FILE = "telemetry.jsonl"
# What the monitor writes of its own doings, and of a host's parts.
MONITOR_LOG = "monitor.log"
TIME_FORMAT = "%Y-%m-%d-%H:%M:%S"
NOT_AVAILABLE = "N/A"
NOTE = "#"
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def monitor_log_name(source: str) -> str:
    """The documented log of a source: of a host's part, or of a vendor's accelerators."""
    return f"{source}_{MONITOR_LOG}"


HOST_LOGS = tuple(map(monitor_log_name, ("cpu", "mem", "pwr", "rapl")))


def timestamp(time_ms: int) -> str:
    """Local time, as the documented logs have it."""
    return time.strftime(TIME_FORMAT, time.localtime(time_ms / 1000))


def value_log(time_ms: int, value: float | None, digits: int) -> str:
    """An entry of `cpu_`, `mem_` or `pwr_monitor.log`: timestamp, tab, value."""
    shown = NOT_AVAILABLE if value is None else f"{value:.{digits}f}"
    return f"{timestamp(time_ms)}\t{shown}\n"


def device_log(time_ms: int, samples: Sequence[Sample]) -> str:
    """An entry of `<vendor>_monitor.log`: timestamp, `33C 61W 1234MiB 40536MiB 98%` a card, blank line."""
    cards = "".join(f"{_card(sample)}\n" for sample in samples)
    return f"{timestamp(time_ms)}\n{cards}\n"


def note_line(time_ms: int, text: str) -> str:
    """A line that is no sample: why there are none, or what they are."""
    return f"{NOTE} {timestamp(time_ms)}\t{' '.join(text.split())}\n"


def record_line(record: Sample | Tick | SourceInfo) -> str:
    """A line of `telemetry.jsonl`. What was not measured is left out; a sample is a tick of one device."""
    if isinstance(record, Sample):
        (record,) = ticks_of([record])
    fields = {name: value for name, value in vars(record).items() if value not in (None, "")}
    if isinstance(record, Tick):
        fields["readings"] = {name: _rounded(name, column) for name, column in record.readings.items()}
    return _ENCODER.encode(fields) + "\n"


def _rounded(name: str, column: Sequence[float | None]) -> list[float | None]:
    """With as many digits as mean something: a line a second of every device is written for hours."""
    decimals = BY_NAME[name].decimals
    return [value if value is None else round(value, decimals) for value in column]


def _card(sample: Sample) -> str:
    percent = None if sample.utilisation is None else sample.utilisation * 100
    columns = (
        (sample.temperature_c, "C"),
        (sample.power_w, "W"),
        (sample.memory_used_mib, "MiB"),
        (sample.memory_total_mib, "MiB"),
        (percent, "%"),
    )
    return " ".join(NOT_AVAILABLE if value is None else f"{value:.0f}{unit}" for value, unit in columns)
