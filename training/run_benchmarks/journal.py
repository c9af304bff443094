"""The run's journal: one line of JSON a state change, flushed, so that a run can be followed and resumed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, TextIO


class Journal:
    """Appends to `<run>/journal.jsonl`. Each line: `time` (seconds since the epoch), `event` and its facts."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a", encoding="utf-8")

    def write(self, event: str, **facts: Any) -> None:
        """Record that `event` happened now."""
        record = {"time": round(time.time(), 3), "event": event, **facts}
        self._file.write(json.dumps(record, default=str) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
