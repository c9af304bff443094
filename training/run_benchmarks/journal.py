"""The run's journal: one line of JSON a state change, flushed, so that a run can be followed and resumed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from run_benchmarks.run_log import LineFile


class Journal:
    """Appends to `<run>/journal.jsonl`. Each line: `time` (seconds since the epoch), `event` and its facts."""

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path)
        self.close = self._file.close

    def write(self, event: str, **facts: Any) -> None:
        """Record that `event` happened now."""
        record = {"time": round(time.time(), 3), "event": event, **facts}
        self._file.write(json.dumps(record, default=str) + "\n")
