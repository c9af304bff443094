"""Temperatures of the host's parts, by the kernel's hwmon (Linux)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from utils.monitors.files import kernel_text
from utils.monitors.source import Source, SourceUnavailableError
from utils.telemetry.records import Sample, Scope

MILLI = 1e-3


class Temperatures(Source):
    """Every sensor that hwmon has: processors, memory, disks, boards."""

    name = "temperature"
    scope = Scope.HOST
    note = "temperatures in degrees Celsius by the kernel's hwmon, from /sys/class/hwmon/*/temp*_input"

    def __init__(self, sys: Path = Path("/sys")) -> None:
        self._root = sys / "class" / "hwmon"

    def open(self) -> None:
        self._sensors = {
            _name(path): path
            for path in sorted(self._root.glob("hwmon*/temp*_input"))
            if _value(path) is not None
        }
        if not self._sensors:
            raise SourceUnavailableError(f"no temperature can be read below {self._root}")

    def sample(self, time_ms: int) -> Sequence[Sample]:
        readings = ((name, _value(path)) for name, path in self._sensors.items())
        return [
            Sample(
                time_ms,
                self.name,
                name,
                temperature_c=value,
                error="" if value is not None else "it does not answer",
            )
            for name, value in readings
        ]


def _value(path: Path) -> float | None:
    """None of a sensor that is there and does not answer, as some drivers' are."""
    try:
        return int(kernel_text(path)) * MILLI
    except (OSError, ValueError):
        return None


def _name(path: Path) -> str:
    """`coretemp/Package id 0`, with the chip's number, of which there may be several."""
    chip, label = path.parent, path.with_name(path.name.replace("_input", "_label"))
    sensor = label.read_text().strip() if label.exists() else path.name.replace("_input", "")
    return f"{chip.name}/{(chip / 'name').read_text().strip() if (chip / 'name').exists() else ''}/{sensor}"
