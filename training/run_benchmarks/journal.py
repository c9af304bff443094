"""The run's journal: one line of JSON a state change, flushed, so that a run can be followed and resumed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, TextIO

from run_benchmarks.run_log import LOGGER


class Journal:
    """Appends to `<run>/journal.jsonl`. Each line: `time` (seconds since the epoch), `event` and its facts.

    A journal that cannot be written (a full disk) is reported once in the log and ends no run: units on hosts
    and results are worth more. What could not be written is tried again with the next event.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failed = False
        self._file: TextIO = path.open("a", encoding="utf-8")

    def write(self, event: str, **facts: Any) -> None:
        """Record that `event` happened now."""
        record = {"time": round(time.time(), 3), "event": event, **facts}
        try:
            self._file.write(json.dumps(record, default=str) + "\n")
            self._file.flush()
        except OSError as error:
            self._report(error)

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            self._report(error)

    def _report(self, error: OSError) -> None:
        if not self._failed:
            LOGGER.error(f"{self._path} is not complete, the run goes on: {error.strerror}")
        self._failed = True
