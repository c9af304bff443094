"""The journal: what happened stands in the file at once."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from pathlib import Path

import pytest

import run_benchmarks.journal
from run_benchmarks.journal import Journal, is_held
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
    told, _ = log_lines.messages
    assert "disk is full: /dev/full cannot be written" in told


def test_it_is_its_owners_alone_for_who_can_open_it_can_lock_it(tmp_path: Path) -> None:
    before = os.umask(0)
    journal = Journal(tmp_path / "journal.jsonl")
    os.umask(before)
    assert (tmp_path / "journal.jsonl").stat().st_mode & 0o777 == 0o600
    assert is_held(tmp_path / "journal.jsonl")
    journal.close()
    assert is_held(tmp_path / "journal.jsonl") is False


def test_another_ones_lock_holds_up_no_run(
    tmp_path: Path, log_lines: LogLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_benchmarks.journal, "RETRY_S", 0.0)
    path = tmp_path / "journal.jsonl"
    path.touch()
    with path.open("rb") as anothers:
        fcntl.flock(anothers, fcntl.LOCK_EX)
        released = threading.Timer(20, fcntl.flock, (anothers, fcntl.LOCK_UN))
        released.start()
        journal = Journal(path)
        assert released.is_alive()
        released.cancel()
        released.join()
    journal.write("run_started")
    journal.close()
    assert len(records(path)) == 1
    assert log_lines.messages == [
        f"{path}: another process has locked it, so that nobody can tell how long this run goes on"
    ]
