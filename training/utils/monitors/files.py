"""The files that a monitor writes: only ever appended to, in whole lines."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from utils.telemetry.lines import record_line
from utils.telemetry.records import SourceInfo, Tick


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


def open_log(path: Path) -> IO[str]:
    """Open a log to append to it; half a line that a killed monitor left at its end is cut off first."""
    if path.exists():
        whole = path.read_bytes().rpartition(b"\n")
        path.write_bytes(whole[0] + whole[1])
    return path.open("a", encoding="utf-8")
