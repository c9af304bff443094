"""The accelerators of a vendor, sampled by that vendor's own `<vendor>/<vendor>_monitor.py`.

That file is loaded by path. It defines

    def open_devices() -> DeviceMonitor

which raises an exception that says what is missing where the chips cannot be sampled. A file without it is
left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from utils.errors import raised
from utils.loading import load_module
from utils.monitors.source import Source, SourceUnavailableError
from utils.telemetry.lines import device_log
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
        self.log_name = f"{vendor_dir.name}_monitor.log"
        self.note = ""
        self._file = monitor_file(vendor_dir)

    def open(self) -> None:
        if not defines(self._file, "open_devices"):
            raise SourceUnavailableError(
                f"{self._file}: has no open_devices(), so the accelerators are not sampled: a monitor that is "
                "a program of its own (-o start -l DIR) is not started; CONTRIBUTING.md says what one is here"
            )
        try:
            module = load_module(self._file, f"flagperf_{self.name}_monitor")
            self._devices: DeviceMonitor = module.open_devices()
        except Exception as error:
            raise SourceUnavailableError(f"{self._file}: {raised(error)}") from error
        self.note = str(self._devices.note)

    def sample(self, time_ms: int) -> Sequence[Sample]:
        return self._devices.sample(time_ms)

    def log_entry(self, time_ms: int, samples: Sequence[Sample]) -> str:
        return device_log(time_ms, samples)

    def close(self) -> None:
        self._devices.close()


def defines(file: Path, function: str) -> bool:
    """Whether `file` defines or imports `function` at its top, told without executing it.

    An existing FlagPerf vendor's monitor is a program that makes itself a daemon: nothing to be imported.
    True where the file cannot be read: loading it says why.
    """
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return True
    names = [getattr(node, "name", "") for node in body]
    imported = [
        alias.asname or alias.name for n in body if isinstance(n, ast.ImportFrom) for alias in n.names
    ]
    return function in names or function in imported


def monitor_file(vendor_dir: Path) -> Path:
    """The file with which a vendor samples its devices."""
    return vendor_dir / f"{vendor_dir.name}_monitor.py"
