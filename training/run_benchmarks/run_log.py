"""The run's log, in FlagPerf's documented format, in `flagperf_run.log` and on the terminal."""

from __future__ import annotations

import logging
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
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter(FORMAT))
    LOGGER.addHandler(handler)
    return handler


def stop_file_log(handler: logging.Handler) -> None:
    """Close what `start_file_log` opened."""
    LOGGER.removeHandler(handler)
    handler.close()
