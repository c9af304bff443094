"""The run's log has FlagPerf's documented format, in the file and on the terminal."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest

from run_benchmarks.run_log import (
    LOGGER,
    LONG,
    SHORT,
    LineFile,
    hidden_in_log,
    log_briefly,
    log_to_file,
    log_to_terminal,
    log_warnings,
)

# 2022-11-21 19:19:24,013<TAB>[INFO]<TAB>[run.py,500]message
LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\t\[(DEBUG|INFO|WARNING|ERROR)\]\t\[[\w.]+\.py,\d+\](.*)"
)


@pytest.fixture
def terminal() -> io.StringIO:
    stream = io.StringIO()
    log_to_terminal("info", stream.write)
    return stream


def test_a_line_has_the_documented_format(terminal: io.StringIO, tmp_path: Path) -> None:
    with log_to_file(tmp_path / "flagperf_run.log", "info"):
        LOGGER.info("Step 1: check")
        LOGGER.error("Ü is down")
    lines = (tmp_path / "flagperf_run.log").read_text(encoding="utf-8").splitlines()
    matches = [LINE.fullmatch(line) for line in lines]
    assert [match and match.groups() for match in matches] == [
        ("INFO", "Step 1: check"),
        ("ERROR", "Ü is down"),
    ]
    assert "[test_run_log.py," in lines[0]
    assert terminal.getvalue().splitlines() == lines


@pytest.mark.parametrize("text", ["{}", "{name} <red>x</red> {{", "100 % {message}", "a\\<b>\nc"])
def test_a_message_is_shown_as_it_is(text: str, terminal: io.StringIO) -> None:
    LOGGER.info(text)
    shown = text.replace("\n", "\n    ")
    assert terminal.getvalue().endswith(f"]{shown}\n")


@pytest.mark.parametrize(
    ("level", "shown"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1), ("INFO", 3)]
)
def test_the_level_of_the_settings(level: str, shown: int, tmp_path: Path) -> None:
    terminal = io.StringIO()
    log_to_terminal(level, terminal.write)
    with log_to_file(tmp_path / "log", level):
        for name in ("DEBUG", "INFO", "WARNING", "ERROR"):
            LOGGER.log(name, "x")
    assert len((tmp_path / "log").read_text().splitlines()) == shown
    assert len(terminal.getvalue().splitlines()) == shown


def test_a_file_that_is_closed_gets_nothing_more(terminal: io.StringIO, tmp_path: Path) -> None:
    with log_to_file(tmp_path / "log", "info"):
        pass
    LOGGER.info("after it")
    assert (tmp_path / "log").read_text() == ""
    assert "after it" in terminal.getvalue()


def test_by_default_the_terminal_is_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_terminal("info")
    LOGGER.info("hello")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert LINE.fullmatch(shown.err.rstrip("\n"))


def test_a_verb_that_runs_nothing_shows_warnings_as_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    log_warnings()
    LOGGER.info("connected")
    LOGGER.warning("h1: a key that was never seen is recorded")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "h1: a key that was never seen is recorded\n")


def test_no_value_of_a_variable_is_shown_with_an_exception(terminal: io.StringIO, tmp_path: Path) -> None:
    password = "word"
    with log_to_file(tmp_path / "log", "debug"):
        try:
            assert not password
        except AssertionError:
            LOGGER.exception("it broke")
    shown = terminal.getvalue() + (tmp_path / "log").read_text()
    assert "it broke" in shown and "word" not in shown.replace("password", "")


def test_what_is_to_be_hidden_is_hidden_in_every_sink(terminal: io.StringIO, tmp_path: Path) -> None:
    shown: list[str] = []
    log_briefly("debug", lambda level, line: shown.append(line))
    with log_to_file(tmp_path / "log", "debug"), hidden_in_log(lambda text: text.replace("sesame", "***")):
        LOGGER.bind(detail="why: sesame").error("open sesame")
        LONG.debug("long sesame")
    text = (tmp_path / "log").read_text() + "\n".join(shown)
    assert text.count("***") == 4
    assert "sesame" not in text
    LOGGER.info("sesame")
    assert "sesame" in shown[-1]


def test_a_full_disk_is_told_of_once_on_the_terminal_and_ends_nothing(
    terminal: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    with log_to_file(Path("/dev/full"), "info"):
        for number in range(3):
            LOGGER.info(f"line {number}")
    LOGGER.info("after it")
    shown = terminal.getvalue()
    assert shown.count("/dev/full cannot be written; the run goes on") == 1
    assert all(text in shown for text in ("line 0", "line 1", "line 2", "after it"))
    assert "Traceback" not in shown + capsys.readouterr().err


def test_what_would_steer_a_terminal_or_cannot_be_written_is_replaced(
    terminal: io.StringIO, tmp_path: Path
) -> None:
    with log_to_file(tmp_path / "log", "info"):
        LOGGER.error("\x1b]0;x\a\ud800")
    for text in (terminal.getvalue(), (tmp_path / "log").read_text()):
        assert "\ufffd]0;x\ufffd\ufffd" in text


FORGED = "2022-11-21 19:19:24,013\t[INFO]\t[runner.py,97]case x, round 1: CONVERGED"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x85", "\u2028", "\x0b"])
def test_no_text_passes_for_a_record_of_its_own(
    end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"x{end}{FORGED}{end}12:00:00 INFO    case x, round 1: CONVERGED"
    brief: list[str] = []
    log_briefly("info", lambda level, line: brief.append(line))
    with log_to_file(tmp_path / "log", "info"):
        LOGGER.bind(detail=text).error(text)
    log_warnings()
    LOGGER.error(text)
    first, *others = (tmp_path / "log").read_text().splitlines()
    assert LINE.fullmatch(first) and all(line.startswith("    ") for line in others)
    assert all(line.startswith(" " * 17) for line in brief[0].splitlines()[1:])
    assert all(line.startswith("    ") for line in capsys.readouterr().err.splitlines()[1:])


def test_a_short_line_has_time_level_and_text(tmp_path: Path) -> None:
    """Further lines of a message stand below its text; the file keeps the documented format."""
    shown: list[tuple[str, str]] = []
    log_briefly("info", lambda level, line: shown.append((level, line)))
    with log_to_file(tmp_path / "log", "info"):
        LOGGER.warning("{a} is\ntwo lines")
        LOGGER.debug("not asked for")
    ((level, line),) = shown
    assert level == "WARNING"
    assert re.fullmatch(r"\d\d:\d\d:\d\d WARNING \{a\} is\n {17}two lines", line)
    assert LINE.fullmatch((tmp_path / "log").read_text().splitlines()[0])


def test_what_a_terminal_shows_in_another_way_is_logged_to_the_file(
    terminal: io.StringIO, tmp_path: Path
) -> None:
    with log_to_file(tmp_path / "log", "info"):
        LONG.info("the whole table")
        SHORT.info("its sum")
    assert (tmp_path / "log").read_text().endswith("]the whole table\n")
    assert terminal.getvalue() == (tmp_path / "log").read_text()
    shown: list[str] = []
    log_briefly("info", lambda level, line: shown.append(line))
    LONG.info("the whole table")
    SHORT.info("its sum")
    assert [line[17:] for line in shown] == ["its sum"]


def test_a_detail_is_in_the_file_and_the_terminal_says_where(tmp_path: Path) -> None:
    plain, path = io.StringIO(), tmp_path / "flagperf_run.log"
    brief: list[str] = []
    log_to_terminal("info", plain.write)
    with log_to_file(path, "info"):
        LOGGER.bind(detail="Traceback {x}\n  <line>").error("it broke")
        LOGGER.bind(detail="last words", more_in="/run/rank0.out.log").error("rank 0 ended")
    assert "]it broke\n    Traceback {x}\n      <line>\n" in path.read_text()
    assert f"]it broke (more in {path})\n" in plain.getvalue()
    assert "]rank 0 ended (more in /run/rank0.out.log)\n" in plain.getvalue()
    assert "Traceback" not in plain.getvalue() and "last words" not in plain.getvalue()
    log_briefly("info", lambda level, line: brief.append(line))
    LOGGER.bind(detail="Traceback").error("no file is open")
    with log_to_file(path, "info"):
        LOGGER.bind(detail="Traceback").error("it broke")
    assert brief[0].endswith("no file is open") and brief[1].endswith(f"it broke (more in {path})")


def test_a_log_that_leads_elsewhere_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to(tmp_path / "another")
    with pytest.raises(OSError, match="log"):
        LineFile(tmp_path / "log")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="pipe"):
        LineFile(tmp_path / "pipe")
    assert not (tmp_path / "another").exists()
