"""The run's log has FlagPerf's documented format, in the file and on the terminal."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.run_log import FORMAT, LOGGER, start_file_log, start_terminal_log, stop_file_log

# 2022-11-21 19:19:24,013<TAB>[INFO]<TAB>[run.py,500]message
LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\t\[(DEBUG|INFO|WARNING|ERROR)\]\t\[[\w.]+\.py,\d+\](.*)"
)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """The logger as other tests know it."""
    before = (LOGGER.handlers, LOGGER.level, LOGGER.propagate)
    yield
    LOGGER.handlers, LOGGER.level, LOGGER.propagate = before


@pytest.fixture
def terminal() -> io.StringIO:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(FORMAT))
    start_terminal_log("info", handler)
    return stream


def test_a_line_has_the_documented_format(terminal: io.StringIO, tmp_path: Path) -> None:
    log = start_file_log(tmp_path / "flagperf_run.log")
    LOGGER.info("Step 1: check")
    LOGGER.error("Ü is down")
    stop_file_log(log)
    lines = (tmp_path / "flagperf_run.log").read_text(encoding="utf-8").splitlines()
    matches = [LINE.fullmatch(line) for line in lines]
    assert [match and match.groups() for match in matches] == [
        ("INFO", "Step 1: check"),
        ("ERROR", "Ü is down"),
    ]
    assert "[test_run_log.py," in lines[0]
    assert terminal.getvalue().splitlines() == lines


@pytest.mark.parametrize(
    ("level", "shown"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1), ("INFO", 3)]
)
def test_the_level_of_the_settings(level: str, shown: int, tmp_path: Path) -> None:
    start_terminal_log(level, logging.NullHandler())
    log = start_file_log(tmp_path / "log")
    for number in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        LOGGER.log(number, "x")
    stop_file_log(log)
    assert len((tmp_path / "log").read_text().splitlines()) == shown


def test_a_file_that_is_closed_gets_nothing_more(terminal: io.StringIO, tmp_path: Path) -> None:
    stop_file_log(start_file_log(tmp_path / "log"))
    LOGGER.info("after it")
    assert (tmp_path / "log").read_text() == ""
    assert "after it" in terminal.getvalue()


def test_by_default_the_terminal_is_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    start_terminal_log("info")
    LOGGER.info("hello")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert LINE.fullmatch(shown.err.rstrip("\n"))


def test_a_full_disk_is_told_of_on_the_terminal_and_ends_nothing(
    terminal: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    log = start_file_log(Path("/dev/full"))
    for number in range(3):
        LOGGER.info(f"line {number}")
    stop_file_log(log)
    LOGGER.info("after it")
    shown = terminal.getvalue()
    assert shown.count("/dev/full is not complete, the run goes on") == 1
    assert "No space left" in shown
    assert all(text in shown for text in ("line 0", "line 1", "line 2", "after it"))
    assert "Traceback" not in shown + capsys.readouterr().err
