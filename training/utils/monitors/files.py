"""The files that a monitor writes: only ever appended to, in whole lines."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from utils.telemetry.lines import record_line
from utils.telemetry.records import SourceInfo, Tick

LARGEST_TEXT = 2**16  # bytes


class TelemetryFile:
    """A file of telemetry, shared by the sources' threads: whole lines only, on disk after every tick."""

    def __init__(self, path: Path) -> None:
        self._file = open_log(path)
        self._lock = threading.Lock()

    def write(self, records: Iterable[Tick | SourceInfo]) -> None:
        """Append the records as one write."""
        with self._lock:
            self._file.write("".join(map(record_line, records)))
            self._file.flush()

    def close(self) -> None:
        """Nothing can be written from now on."""
        with self._lock:
            self._file.close()


def kernel_text(path: str | Path) -> str:
    """A file of procfs or sysfs, which is given whole: a third of the system calls of `Path.read_text`.

    Raises:
        OSError: it is not there, or does not answer.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, LARGEST_TEXT).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def open_log(path: Path) -> IO[str]:
    """Open a log to append to it; half a line that a killed monitor left at its end is cut off first."""
    if path.exists():
        whole = path.read_bytes().rpartition(b"\n")
        path.write_bytes(whole[0] + whole[1])
    return path.open("a", encoding="utf-8")
