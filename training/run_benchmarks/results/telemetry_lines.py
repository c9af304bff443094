"""The lines of a `telemetry.jsonl`, each checked: what it may hold, and how much of it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from utils.numbers import LARGEST_MEASURED
from utils.telemetry.records import Scope
from utils.text_files import one_line, shortened_to_words

LONGEST_INTERVAL_S = 3600.0  # with a longer one, a source of which most is missing would count as read
LATEST_MS = 2**53  # JSON's whole numbers are exact up to here
MOST_DEVICES = 4_096  # of all its sources: each is reckoned with by itself
MOST_QUANTITIES = 256  # of a line: later versions may have more than this one
LONGEST_TEXT = 4_000  # characters of a name or a note
LONGEST_ERROR = 200  # characters that are kept of what a device answered, and of what is wrong with a line

Time = Annotated[int, msgspec.Meta(ge=0, le=LATEST_MS)]
Number = Annotated[float, msgspec.Meta(ge=-LARGEST_MEASURED, le=LARGEST_MEASURED)]
Interval = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_INTERVAL_S)]
Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
Name = Annotated[str, msgspec.Meta(max_length=100)]
Column = Annotated[list[Number | None], msgspec.Meta(max_length=MOST_DEVICES)]
Texts = Annotated[list[Text | None], msgspec.Meta(max_length=MOST_DEVICES)]


class TickLine(msgspec.Struct, tag="tick", tag_field="kind", forbid_unknown_fields=True, gc=False):
    """A `Tick` as it stands in a line; JSON has no NaN and no infinity."""

    time_ms: Time
    source: Text
    devices: Annotated[list[Text], msgspec.Meta(min_length=1, max_length=MOST_DEVICES)]
    readings: Annotated[dict[Name, Column], msgspec.Meta(max_length=MOST_QUANTITIES)]
    power_on: Texts | None = None
    throttle: Texts | None = None
    error: Annotated[list[Text], msgspec.Meta(max_length=MOST_DEVICES)] | None = None
    monotonic_ms: Time | None = None

    def __post_init__(self) -> None:
        """Each column has a value a device, and no device stands there twice."""
        lists = (*self.readings.values(), self.power_on, self.throttle, self.error)
        if any(values is not None and len(values) != len(self.devices) for values in lists):
            raise ValueError(f"a column has not as many values as there are devices ({len(self.devices)})")
        if len(set(self.devices)) < len(self.devices):
            raise ValueError("a device stands there twice")


class SampleLine(msgspec.Struct, tag="sample", tag_field="kind", forbid_unknown_fields=True, gc=False):
    """A device's reading, as versions before 2026-12 wrote it: a line each."""

    time_ms: Time
    source: Text
    device: Text = ""
    utilisation: Number | None = None
    power_w: Number | None = None
    energy_mj: Number | None = None
    energy_range_mj: Number | None = None
    memory_used_mib: Number | None = None
    memory_total_mib: Number | None = None
    temperature_c: Number | None = None
    power_on: Text | None = None
    error: Text = ""

    def tick(self) -> TickLine:
        """The same as a tick of one device."""
        readings = {name: [value] for name in OLD_READINGS if (value := getattr(self, name)) is not None}
        return TickLine(
            self.time_ms,
            self.source,
            [self.device],
            readings,
            power_on=None if self.power_on is None else [self.power_on],
            error=[self.error] if self.error else None,
        )


class SourceLine(msgspec.Struct, tag="source", tag_field="kind", forbid_unknown_fields=True):
    """A `SourceInfo` as it stands in a line, its fields in the same order."""

    time_ms: Time
    source: Text
    scope: Scope
    interval_s: Interval
    note: Text = ""
    reason: Text = ""


OLD_READINGS = (
    "utilisation",
    "power_w",
    "energy_mj",
    "energy_range_mj",
    "memory_used_mib",
    "memory_total_mib",
    "temperature_c",
)
_DECODER: msgspec.json.Decoder[TickLine | SampleLine | SourceLine] = msgspec.json.Decoder(
    TickLine | SampleLine | SourceLine
)
NOT_DECODED = (msgspec.DecodeError, RecursionError)


def decoded(line: str) -> TickLine | SourceLine:
    """The record that a line is.

    Raises:
        NOT_DECODED: it is none.
    """
    record = _DECODER.decode(line)
    return record.tick() if isinstance(record, SampleLine) else record


def why_none(error: Exception) -> str:
    """What is wrong with a line."""
    return f"not a telemetry record: {shortened_to_words(one_line(str(error)), LONGEST_ERROR)}"
