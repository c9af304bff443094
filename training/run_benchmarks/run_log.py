"""The run's log, in FlagPerf's documented format, in `flagperf_run.log` and on the terminal."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

# 2022-11-21 19:19:24,013<TAB>[INFO]<TAB>[run.py,500]message
FORMAT = "%(asctime)s\t[%(levelname)s]\t[%(filename)s,%(lineno)d]%(message)s"
LOGGER = logging.getLogger("flagperf")
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def start_terminal_log(level: str, handler: logging.Handler | None = None) -> logging.Handler:
    """Show the log on the terminal (standard error, or through `handler`)."""
    shown = handler or logging.StreamHandler()
    if handler is None:
        shown.setFormatter(logging.Formatter(FORMAT))
    LOGGER.setLevel(LEVELS[level.lower()])
    LOGGER.propagate = False
    LOGGER.handlers = [shown]
    return shown


def start_file_log(path: Path) -> logging.Handler:
    """Write the log to `path` too."""
    handler = _FileLog(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter(FORMAT))
    LOGGER.addHandler(handler)
    return handler


def stop_file_log(handler: logging.Handler) -> None:
    """Close what `start_file_log` opened."""
    LOGGER.removeHandler(handler)
    try:
        handler.close()
    except OSError as error:
        LOGGER.error(f"the log file is not complete: {error.strerror}")


class _FileLog(logging.FileHandler):
    """Tells once that its file cannot be written (a full disk); `logging` prints a traceback a record."""

    failed = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Called where a record could not be written."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)
        elif not self.failed:
            self.failed = True
            LOGGER.error(f"{self.baseFilename} is not complete, the run goes on: {sys.exc_info()[1]}")
