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
from run_benchmarks.journal import Journal, is_held, nodes_of_run
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


@pytest.mark.parametrize("name", ["-x", "n1,n2", "n[1-9]", "n1 n2", "a" * 300, "", "n1\n", 7, None, ["n1"]])
def test_what_is_no_name_of_a_host_becomes_none_and_is_named(name: object) -> None:
    journal = [
        {"event": "acquired", "hosts": ["n2", "n1"]},
        {"event": "acquired", "hosts": ["n3", name, "n5"]},
        {"event": "stage", "hosts": ["n4"]},
        {"event": "acquired", "hosts": ["n1"]},
    ]
    nodes, wrong = nodes_of_run(journal, "journal.jsonl")
    assert nodes == ["n1", "n2", "n3", "n5"]
    assert str(wrong["journal.jsonl"]).startswith("journal.jsonl: its nodes are not all known: entry 2: ")


def test_of_a_runs_hosts_no_more_are_looked_at_than_a_run_can_have() -> None:
    granted = [{"event": "acquired", "hosts": [f"n{number}" for number in range(20_000)]}]
    nodes, wrong = nodes_of_run(granted, "journal.jsonl")
    assert len(nodes) == 10_000 and "of 20000 only 10000" in str(wrong["journal.jsonl"])
    assert nodes_of_run(granted[:0], "journal.jsonl") == ([], {})


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
