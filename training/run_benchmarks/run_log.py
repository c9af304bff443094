"""The run's log, in FlagPerf's documented format, in `flagperf_run.log` and on the terminal.

Messages are whole texts: `LOGGER.info(f"...")`. Given arguments, loguru would take braces in them for fields.
No sink shows the values of variables in a traceback, for they may be secrets.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from loguru import logger as LOGGER  # noqa: N812 - a constant: there is one log

if TYPE_CHECKING:
    from loguru import Message, Record

__all__ = ["LOGGER", "log_to_file", "log_to_terminal", "log_warnings"]

# 2022-11-21 19:19:24,013<TAB>[INFO]<TAB>[run.py,500]message
_FORMAT = "{time:YYYY-MM-DD HH:mm:ss,SSS}\t[{level}]\t[{file},{line}]{message}\n"
Sink = Callable[[str], None]


def log_warnings() -> None:
    """Show warnings and errors alone, as plain lines on standard error: what verbs want that run nothing."""
    _show(_to_standard_error, "warning", "{message}\n")


def log_to_terminal(level: str, sink: Sink | None = None) -> None:
    """Show the log on the terminal (standard error, or through `sink`), and nowhere else.

    Args:
        level: `debug`, `info`, `warning` or `error`.
        sink: takes a line with its end.
    """
    _show(sink or _to_standard_error, level, _FORMAT)


@contextmanager
def log_to_file(path: Path, level: str) -> Iterator[None]:
    """Write the log to `path` too, as long as the context lasts.

    A file that cannot be written (a full disk) is reported once and ends no run; every line is tried.

    Raises:
        OSError: it cannot be opened.
    """
    sink = _FileSink(path)
    number = _add(sink.write, level, _FORMAT, sink.wants)
    try:
        yield
    finally:
        LOGGER.remove(number)
        sink.close()


class _FileSink:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._reported = False
        self._file = path.open("a", encoding="utf-8")

    def wants(self, record: Record) -> bool:
        """Whether the record is for this file: what it says of itself is not."""
        return record["extra"].get("about") is not self

    def write(self, line: Message) -> None:
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            self._report(error)

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            self._report(error)

    def _report(self, error: OSError) -> None:
        if not self._reported:
            self._reported = True
            LOGGER.bind(about=self).error(f"{self._path} is not complete, the run goes on: {error.strerror}")


def _show(sink: Sink, level: str, line: str) -> None:
    LOGGER.remove()
    _add(sink, level, line)


def _add(
    sink: Sink | Callable[[Message], None],
    level: str,
    line: str,
    wanted: Callable[[Record], bool] | None = None,
) -> int:
    # a function as format: loguru adds the traceback of an exception to a text
    return LOGGER.add(
        sink,
        level=level.upper(),
        format=lambda record: line,
        filter=wanted,
        backtrace=False,
        diagnose=False,
    )


def _to_standard_error(line: str) -> None:
    # looked up with every line: what stands for it may change
    sys.stderr.write(line)
    sys.stderr.flush()


log_warnings()
