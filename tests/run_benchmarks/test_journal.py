"""The journal: what happened stands in the file at once."""

from __future__ import annotations

import json
import time
from pathlib import Path

from run_benchmarks.journal import Journal
from tests.run_benchmarks.conftest import LogLines


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_state_change_is_on_disk_before_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    before = time.time()
    journal.write("round_started", case="toy", round=1)
    (record,) = records(path)  # the journal is still open, as when the controller is killed now
    assert {name: record[name] for name in ("event", "case", "round")} == {
        "event": "round_started",
        "case": "toy",
        "round": 1,
    }
    assert isinstance(record["time"], float) and abs(record["time"] - before) < 60
    journal.close()


def test_a_journal_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for event in ("run_started", "run_resumed"):
        journal = Journal(path)
        journal.write(event)
        journal.close()
    assert [record["event"] for record in records(path)] == ["run_started", "run_resumed"]


def test_any_fact_is_one_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.write("stage", text="two\nlines", path=tmp_path, name="Ü")
    journal.close()
    (record,) = records(tmp_path / "journal.jsonl")
    assert (record["text"], record["path"], record["name"]) == ("two\nlines", str(tmp_path), "Ü")


def test_a_full_disk_is_told_of_once_and_ends_nothing(log_lines: LogLines) -> None:
    journal = Journal(Path("/dev/full"))
    for number in range(3):
        journal.write("stage", number=number)
    journal.close()
    (told,) = log_lines.messages
    assert "/dev/full is not complete" in told and "No space left" in told
