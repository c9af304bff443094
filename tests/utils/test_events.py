"""PerfLog lines: what is written is read, whatever stands around it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from utils.errors import FlagPerfError
from utils.events import Event, EventName, format_line, parse_line, read_events

STEP_END = Event(
    "STEP_END", {"loss": 2.5, "global_steps": 3}, time_ms=1_700_000_000_123, rank=1, file="t.py", lineno=7
)

# A line as FlagPerf's own trainers write it.
FLAGPERF_LINE = (
    '[PerfLog] {"event": "FINISHED", "value": {"e2e_time": 3309.4, "converged": true}, '
    '"metadata": {"file": "/workspace/run_pretraining.py", "lineno": 292, "time_ms": 1669030764013, "rank": 0}}'
)


def test_written_line_has_the_documented_form() -> None:
    line = format_line(STEP_END)
    prefix, _, record = line.partition(" ")
    assert prefix == "[PerfLog]"
    assert json.loads(record) == {
        "event": "STEP_END",
        "value": {"loss": 2.5, "global_steps": 3},
        "metadata": {"file": "t.py", "lineno": 7, "time_ms": 1_700_000_000_123, "rank": 1},
    }
    assert "\n" not in line


def test_round_trip() -> None:
    assert parse_line(format_line(STEP_END)) == STEP_END


def test_name_of_the_enumeration_is_written_as_it_is_called() -> None:
    event = parse_line(format_line(Event(EventName.TRAIN_START)))
    assert event is not None
    assert event.name == "TRAIN_START" == EventName.TRAIN_START


def test_flagperfs_own_line() -> None:
    event = parse_line(FLAGPERF_LINE)
    assert event == Event(
        "FINISHED",
        {"e2e_time": 3309.4, "converged": True},
        time_ms=1669030764013,
        rank=0,
        file="/workspace/run_pretraining.py",
        lineno=292,
    )


def test_launchers_prefix_before_the_event() -> None:
    assert parse_line(f"[default1]:{format_line(STEP_END)}") == STEP_END


@pytest.mark.parametrize("line", ["\rstep 50{}", "{} 37%|###  |", "\r 3/9 {}step 51", "{}{}"])
def test_a_progress_bar_or_another_threads_output_in_the_events_line(line: str) -> None:
    assert parse_line(line.replace("{}", format_line(STEP_END))) == STEP_END


def test_a_text_in_place_of_values() -> None:
    """Loggers of existing cases write a text under another name, and leave out what there is none of."""
    line = '[PerfLog] {"event": "INIT_END", "other": "Finish initialization", "metadata": {"rank": -1}}'
    assert parse_line(line) == Event("INIT_END", rank=-1)
    assert parse_line('[PerfLog] {"event": "TRAIN_START"}') == Event("TRAIN_START")


@pytest.mark.parametrize(
    "line",
    ["", "loss 2.5", '[PerfLog] {"event": "STEP_E', "[PerfLog] 3", '[PerfLog] {"value": {}}', "[PerfLog]"],
)
def test_lines_without_a_whole_event(line: str) -> None:
    assert parse_line(line) is None


def test_null_metadata() -> None:
    assert parse_line('[PerfLog] {"event": "X", "value": null, "metadata": null}') == Event("X")


def test_numbers_that_json_does_not_know() -> None:
    line = format_line(
        Event("STEP_END", {"loss": math.nan, "nested": [math.inf, {"a": -math.inf}], "ok": 1.0})
    )
    event = parse_line(line)
    assert event is not None
    assert event.value == {"loss": None, "nested": [None, {"a": None}], "ok": 1.0}


def test_reading_a_log_with_other_output_and_a_cut_end(tmp_path: Path) -> None:
    log = tmp_path / "rank0.out.log"
    whole = format_line(STEP_END)
    log.write_bytes(f"loading\n{whole}\n".encode() + b"\xff\xfe broken bytes\n" + whole[:40].encode())
    assert read_events(log) == [STEP_END]


def test_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match="cannot be read") as caught:
        read_events(tmp_path / "none.log")
    assert caught.value.where == str(tmp_path / "none.log")


def test_events_stand_in_the_order_of_a_run() -> None:
    names = [name.value for name in EventName]
    assert names[0] == "INIT_START" and names[-1] == "FINISHED"
    assert (
        names.index("TRAIN_START")
        < names.index("STEP_BEGIN")
        < names.index("STEP_END")
        < names.index("TRAIN_END")
    )


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    """JSON can write it, and no file can hold it."""
    event = parse_line(r'[PerfLog] {"event": "FINISHED", "value": {"metric": "\ud800", "x": "\uD83D\uDE00"}}')
    assert event is not None and event.value == {"metric": "?", "x": "\U0001f600"}
