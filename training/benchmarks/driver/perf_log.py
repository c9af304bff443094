"""Writes PerfLog events to standard output: the rank's log."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from utils.events import Event, EventName, format_line


class PerfLog:
    """The event log of one rank. Every rank writes its events; FINISHED is written by global rank 0 only."""

    def __init__(self, rank: int, stream: TextIO | None = None) -> None:
        self.rank = rank
        self._stream = stream

    def write(self, name: EventName, value: Mapping[str, Any] | None = None) -> None:
        """Write one event, with the caller's file and line."""
        if name is EventName.FINISHED and self.rank != 0:
            return
        caller = sys._getframe(1)
        event = Event(
            name=name.value,
            value=value or {},
            time_ms=int(time.time() * 1000),
            rank=self.rank,
            file=Path(caller.f_code.co_filename).name,
            lineno=caller.f_lineno,
        )
        # One write a line: the launcher and native libraries write to the same file.
        stream = self._stream or sys.stdout
        stream.write(format_line(event) + "\n")
        stream.flush()
