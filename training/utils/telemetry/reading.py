"""Read what the monitors wrote: strict, but for a last line that a killed host left unfinished."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.errors import FlagPerfError
from utils.telemetry.lines import NOT_AVAILABLE, NOTE, TIME_FORMAT
from utils.telemetry.records import Sample, Scope, SourceInfo, Telemetry


@dataclass(frozen=True)
class LoggedValue:
    """A line of `cpu_`, `mem_` or `pwr_monitor.log`; the time is read in this machine's time zone."""

    time_ms: int
    value: float | None


@dataclass(frozen=True)
class DeviceReading:
    """A card's line of `<vendor>_monitor.log`. `card` counts from 0 within an entry."""

    time_ms: int
    card: int
    temperature_c: float | None
    power_w: float | None
    memory_used_mib: float | None
    memory_total_mib: float | None
    utilisation: float | None


def read_telemetry(path: Path) -> Telemetry:
    """The records of a `telemetry.jsonl`.

    Raises:
        FlagPerfError: the file cannot be read, or a whole line is not a record; names file and line.
    """
    sources: list[SourceInfo] = []
    samples: list[Sample] = []
    for where, line in _whole_lines(path):
        record = _record(line, where)
        if isinstance(record, Sample):
            samples.append(record)
        else:
            sources.append(record)
    return Telemetry(str(path), tuple(sources), tuple(samples))


def read_value_log(path: Path) -> list[LoggedValue]:
    """The entries of a log of one value a line.

    Raises:
        FlagPerfError: the file cannot be read, or a whole line is not `timestamp<TAB>value`.
    """
    return [_logged_value(line, where) for where, line in _whole_lines(path) if _is_entry(line)]


def read_device_log(path: Path) -> list[DeviceReading]:
    """The cards of every complete entry of a `<vendor>_monitor.log`.

    Raises:
        FlagPerfError: the file cannot be read, or a whole line has no place in an entry.
    """
    complete: list[DeviceReading] = []
    entry: list[DeviceReading] = []
    time_ms: int | None = None
    for where, line in _whole_lines(path):
        if line.startswith(NOTE):
            continue
        if not line.strip():
            complete, entry, time_ms = complete + entry, [], None
        elif time_ms is None:
            time_ms = _time_ms(line.strip(), where)
        else:
            entry.append(_device_reading(line, time_ms, len(entry), where))
    return complete


def _whole_lines(path: Path) -> Iterator[tuple[str, str]]:
    """`file:line` and text of every line that was written to its end.

    A host that lost power may leave half a line, or zero bytes that were allocated and never written.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise FlagPerfError(f"cannot read the telemetry: {error.strerror}", where=str(path)) from error
    whole, _, _cut = text.rpartition("\n")
    for number, line in enumerate(whole.split("\n") if whole else (), start=1):
        yield f"{path}:{number}", line


def _is_entry(line: str) -> bool:
    return bool(line.strip()) and not line.startswith(NOTE)


def _record(line: str, where: str) -> Sample | SourceInfo:
    try:
        fields = json.loads(line)
        kind = fields.pop("kind")
        if kind == "sample":
            return _checked_sample(Sample(**fields))
        if kind == "source":
            return _source_info(fields)
        raise ValueError(f"kind {kind!r} is neither sample nor source")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FlagPerfError(
            f"not a telemetry record: {error}",
            where=where,
            remedy="the file was edited or comes from another version; leave this line out to read the rest",
        ) from error


def _checked_sample(sample: Sample) -> Sample:
    texts = ("source", "device", "error")
    for name, value in vars(sample).items():
        if not isinstance(value, str if name in texts else (int, float, type(None))):
            raise ValueError(f"{name} is {value!r}")
    return sample


def _source_info(fields: Mapping[str, Any]) -> SourceInfo:
    known = {"note": "", **fields, "scope": Scope(fields["scope"])}
    return SourceInfo(**known)


def _logged_value(line: str, where: str) -> LoggedValue:
    stamp, _, shown = line.partition("\t")
    return LoggedValue(_time_ms(stamp, where), _number(shown.strip(), "", where))


_CARD_UNITS = ("C", "W", "MiB", "MiB", "%")


def _device_reading(line: str, time_ms: int, card: int, where: str) -> DeviceReading:
    columns = line.split()
    if len(columns) != len(_CARD_UNITS):
        raise _malformed("a card's line has 5 columns, as in `33C 61W 1234MiB 40536MiB 98%`", line, where)
    values = [_number(column, unit, where) for column, unit in zip(columns, _CARD_UNITS, strict=True)]
    percent = values[4]
    return DeviceReading(
        time_ms, card, values[0], values[1], values[2], values[3], None if percent is None else percent / 100
    )


def _number(text: str, unit: str, where: str) -> float | None:
    if text == NOT_AVAILABLE:
        return None
    if not re.fullmatch(rf"-?\d+(\.\d+)?{re.escape(unit)}", text):
        raise _malformed(f"expected a number{' in ' + unit if unit else ''}", text, where)
    return float(text.removesuffix(unit) if unit else text)


def _time_ms(stamp: str, where: str) -> int:
    try:
        return round(time.mktime(time.strptime(stamp, TIME_FORMAT)) * 1000)
    except ValueError as error:
        raise _malformed("expected a timestamp like 2022-11-21-19:19:24", stamp, where) from error


def _malformed(expected: str, found: str, where: str) -> FlagPerfError:
    return FlagPerfError(f"{expected}, found {found!r}", where=where)
