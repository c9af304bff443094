import json
import logging
import sys
import time
from typing import Any

from .event import Event


class PerfLogger:
    """Writes PerfLog lines to standard error; `rank` is the local rank, as in existing drivers."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.previous_log_time = 0
        self._logger = logging.Logger("rings")  # without a handler: what is logged goes to standard error

    def log(self, event: Event, message: Any = None) -> None:
        record: dict[str, Any] = {"event": event.name}
        if isinstance(message, str):
            record["other"] = message
        elif message is not None:
            record["value"] = message
        caller = sys._getframe(1)
        self.previous_log_time = int(time.time() * 1e3)
        record["metadata"] = {
            "file": caller.f_code.co_filename,
            "lineno": caller.f_lineno,
            "time_ms": self.previous_log_time,
            "rank": self.rank,
        }
        self._logger.log(101, f"[PerfLog] {json.dumps(record)}")
