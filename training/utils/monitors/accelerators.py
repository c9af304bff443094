"""The accelerators of a vendor, sampled by that vendor's own `<vendor>/<vendor>_monitor.py`.

That file is loaded by path. It defines

    def open_devices() -> DeviceMonitor

which raises an exception that says what is missing where the chips cannot be sampled. A file without it is
left alone. It may also define

    def describe_devices() -> Sequence[Mapping[str, bool | int | float | str | None]]

which is called once, in a thread of its own beside the samples: what each device is, in the order of the device
numbers, for the node's inventory (name, firmware, driver, limits; no serial numbers). It must not end a library that
does not count its starts: the samples would end with it.
"""

from __future__ import annotations

import ast
import math
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from utils.errors import raised
from utils.loading import load_module
from utils.monitors.source import Source, SourceUnavailableError
from utils.telemetry.lines import device_log, monitor_log_name
from utils.telemetry.records import Sample, Scope


class DeviceMonitor(Protocol):
    """What a vendor's `open_devices` returns. `note` says what the figures are and are not."""

    note: str

    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One sample a device, in the order of the device numbers; `source` is the vendor's name.

        A device that does not answer has its `error` set and no values.
        """

    def close(self) -> None:
        """Give the library back."""


class Accelerators(Source):
    """All accelerators of this node, as a source like any other."""

    scope = Scope.ACCELERATOR

    def __init__(self, vendor_dir: Path) -> None:
        self.name = vendor_dir.name
        self.log_name = monitor_log_name(vendor_dir.name)
        self.note = ""
        self._file = monitor_file(vendor_dir)

    def open(self) -> None:
        if not defines(self._file, "open_devices"):
            raise SourceUnavailableError(
                f"{self._file}: has no open_devices(), so the accelerators are not sampled: a monitor that is "
                "a program of its own (-o start -l DIR) is not started; CONTRIBUTING.md says what one is here"
            )
        try:
            self._devices: DeviceMonitor = _module(self._file).open_devices()
        except Exception as error:
            raise SourceUnavailableError(f"{self._file}: {raised(error)}") from error
        self.note = str(self._devices.note)

    def sample(self, time_ms: int) -> Sequence[Sample]:
        return self._devices.sample(time_ms)

    def log_entry(self, time_ms: int, samples: Sequence[Sample]) -> str:
        return device_log(time_ms, samples)

    def close(self) -> None:
        self._devices.close()


def describe_accelerators(vendor_dir: Path | None) -> tuple[dict[str, bool | int | float | str | None], ...]:
    """What the vendor's `describe_devices` says of each accelerator.

    Raises:
        SourceUnavailableError: the vendor has no such function, or it says that there are none.
    """
    file = monitor_file(vendor_dir) if vendor_dir else None
    if file is None or not file.exists():
        raise SourceUnavailableError("the vendor has no monitor of accelerators")
    if not defines(file, "describe_devices"):
        raise SourceUnavailableError(f"{file}: has no describe_devices()")
    devices = _module(file).describe_devices()
    return tuple({str(name): _plain(value) for name, value in each.items()} for each in devices)


def _plain(value: Any) -> bool | int | float | str | None:
    """A value as JSON can hold it."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


_LOADING = threading.Lock()


def _module(file: Path) -> ModuleType:
    """The vendor's file, executed once, whoever asks for it first."""
    with _LOADING:
        return _loaded(file)


@lru_cache(maxsize=8)
def _loaded(file: Path) -> ModuleType:
    return load_module(file, f"flagperf_{file.stem}")


def defines(file: Path, function: str) -> bool:
    """Whether `file` defines or imports `function` at its top, told without executing it.

    An existing FlagPerf vendor's monitor is a program that makes itself a daemon: nothing to be imported.
    True where the file cannot be read: loading it says why.
    """
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):  # the last two: nested too deep
        return True
    names = [getattr(node, "name", "") for node in body]
    imported = [
        alias.asname or alias.name for n in body if isinstance(n, ast.ImportFrom) for alias in n.names
    ]
    return function in names or function in imported


def monitor_file(vendor_dir: Path) -> Path:
    """The file with which a vendor samples its devices."""
    return vendor_dir / f"{vendor_dir.name}_monitor.py"
