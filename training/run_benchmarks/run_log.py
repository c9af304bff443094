"""The run's log: in FlagPerf's documented format in `flagperf_run.log` and on standard error, short on a terminal.

What a terminal shows in another way is logged to LONG, and to SHORT what it shows in its place.
A record's further lines are indented: what begins at the margin is a record, and no text from outside can be one.
Messages are whole texts: `LOGGER.info(f"...")`. Given arguments, loguru would take braces in them for fields.
What a reader of the terminal can do without, a traceback or a rank's last lines, goes to the file alone:
`LOGGER.bind(detail="...").error("a sentence")`. Elsewhere the sentence is followed by the path of the file, or of
that which is bound as `more_in`.
No sink shows the values of variables in a traceback, for they may be secrets.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger as LOGGER  # noqa: N812 - a constant: there is one log

from run_benchmarks.full_disk import FULL, REMEDY, full_text, give_room_back, is_full, keep_room
from utils.text_files import continued, shortened

if TYPE_CHECKING:
    from loguru import Logger, Message, Record

__all__ = [
    "LOGGER",
    "LONG",
    "SHORT",
    "SHORT_HEAD",
    "hidden_in_log",
    "log_briefly",
    "log_full_disk",
    "log_to_file",
    "log_to_terminal",
    "log_warnings",
]

LONG = LOGGER.bind(form="long")
SHORT = LOGGER.bind(form="short")

# 2022-11-21 19:19:24,013<TAB>[INFO]<TAB>[run.py,500]message
_FORMAT = "{time:YYYY-MM-DD HH:mm:ss,SSS}\t[{level}]\t[{file},{line}]{message}\n"
# 19:19:24 INFO    message
_SHORT_FORMAT = "{time:HH:mm:ss} {level: <7} {message}"
ROOM = 2**18  # bytes, for the end of a run whose disk is full
LONGEST_RECORD = 2**16  # characters: what it quotes of a host has no bound of its own
SHORT_HEAD = len("19:19:24 WARNING ")
Sink = Callable[[str], None]


def log_warnings() -> None:
    """Show warnings and errors alone, as plain lines on standard error: what verbs want that run nothing."""
    LOGGER.remove()
    _add(_to_standard_error, "warning", "{message}\n")


def log_to_terminal(level: str, sink: Sink | None = None) -> None:
    """Show the log on the terminal (standard error, or through `sink`, line by line), and nowhere else.

    Args:
        level: `debug`, `info`, `warning` or `error`.
    """
    LOGGER.remove()
    _add(sink or _to_standard_error, level)


def log_briefly(level: str, show: Callable[[str, str], None]) -> None:
    """Show the log in short lines through `show`, which gets the name of each line's level and the line.

    Args:
        level: as for `log_to_terminal`.
    """
    LOGGER.remove()

    def sink(message: Message) -> None:
        show(message.record["level"].name, _as_shown(message, " " * SHORT_HEAD))

    LOGGER.add(
        sink,
        level=level.upper(),
        format=lambda record: _with_detail(_SHORT_FORMAT, record["extra"], whole=False),
        filter=_once(lambda record: record["extra"].get("form") != "long"),
        backtrace=False,
        diagnose=False,
    )


def log_full_disk(path: Path | str, log: Logger = LOGGER) -> None:
    """Say that the controller's disk is full, and what to do: once a run, whatever met it first."""
    log.bind(once=FULL).error(
        f"{full_text(path)}; the run goes on, and what finds no room here stays on its host"
    )
    log.bind(once=REMEDY).error(f"    -> {REMEDY}")


class LineFile:
    """A file of lines, on disk one by one. Where it cannot be written, that is reported once.

    No run ends for it: units on hosts and results are worth more. Every line is tried.

    Args:
        room: bytes for which the disk keeps room, so that more can be told when it is full.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path, room: int = 0) -> None:
        self.path = path
        self._failed = False
        self._room = room
        is_cut = _ends_within_a_line(path)
        # what leads elsewhere, or waits for a reader, is not written to
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._file = os.fdopen(os.open(path, flags, 0o666), "a", encoding="utf-8", buffering=1)
        self._keep_room()
        if is_cut:
            self.write("\n")

    def write(self, line: str) -> None:
        """Append a line, with its end."""
        self._attempt(lambda: self._file.write(line))
        self._keep_room()

    def close(self) -> None:
        """Close the file."""
        if self._room and not self._file.closed:
            with suppress(OSError):
                give_room_back(self._file.fileno())
        self._attempt(self._file.close)

    def _keep_room(self) -> None:
        if self._room:
            keep_room(self._file.fileno(), self._room)

    def _attempt(self, action: Callable[[], object]) -> None:
        try:
            action()
        except OSError as error:
            first, self._failed = not self._failed, True
            if first:  # a sink may not log to itself
                own = LOGGER.bind(beside=self.path)
                if is_full(error):
                    log_full_disk(self.path, own)
                else:
                    own.error(f"{self.path} is not complete, the run goes on: {error.strerror}")


def _ends_within_a_line(path: Path) -> bool:
    """Whether who wrote to a file before was killed in the midst of it."""
    if path.is_symlink() or not path.is_file() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() != b"\n"


@contextmanager
def hidden_in_log(hide: Callable[[str], str]) -> Iterator[None]:
    """Pass every text that is logged through `hide`, wherever it goes, as long as the context lasts."""

    def patch(record: Record) -> None:
        record["message"] = hide(record["message"])
        details = {name: hide(value) for name, value in record["extra"].items() if isinstance(value, str)}
        record["extra"].update(details)

    LOGGER.configure(patcher=patch)
    try:
        yield
    finally:
        LOGGER.configure(patcher=lambda record: None)


@contextmanager
def log_to_file(path: Path, level: str) -> Iterator[None]:
    """Write the log to `path` too, as long as the context lasts.

    Raises:
        OSError: it cannot be opened.
    """
    file = LineFile(path, ROOM)
    number = _add(file.write, level, beside=path)
    try:
        with LOGGER.contextualize(more_in=path):
            yield
    finally:
        LOGGER.remove(number)
        file.close()


def _add(sink: Sink, level: str, line: str = _FORMAT, beside: Path | None = None) -> int:
    # a function as format: loguru adds the traceback of an exception to a text
    return LOGGER.add(
        lambda text: sink(_as_shown(text) + "\n"),
        level=level.upper(),
        format=lambda record: _with_detail(line, record["extra"], whole=beside is not None),
        filter=_once(lambda record: _belongs(record["extra"], beside)),
        backtrace=False,
        diagnose=False,
    )


def _as_shown(text: str, indent: str = "    ") -> str:
    """A record as it is shown: a rank's last words may hold anything, and as much of it."""
    return continued(shortened(text.rstrip("\n"), LONGEST_RECORD), indent)


def _belongs(extra: Mapping[str, object], beside: Path | None) -> bool:
    return extra.get("form") != "short" and (beside is None or extra.get("beside") != beside)


def _once(shows: Callable[[Record], bool]) -> Callable[[Record], bool]:
    """What a sink shows, but that of records which are bound to the same `once` it has the first alone."""
    shown = set()

    def is_shown(record: Record) -> bool:
        once = record["extra"].get("once")
        if not shows(record) or once in shown:
            return False
        shown.update([once] if once else [])
        return True

    return is_shown


def _with_detail(line: str, extra: Mapping[str, Any], whole: bool) -> str:
    """The format of a record: where it has a detail, that follows in the file, and a path elsewhere."""
    if "detail" not in extra:
        return line
    if whole:
        return line + "{extra[detail]}\n"
    pointer = " (more in {extra[more_in]})" if "more_in" in extra else ""
    return line.replace("{message}", "{message}" + pointer)


def _to_standard_error(line: str) -> None:
    # looked up with every line: what stands for it may change
    sys.stderr.write(line)


log_warnings()
