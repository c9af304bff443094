"""Tasks on several processes: in order, and none of the processes outlives a failure or its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import benchmarks
from benchmarks.common.preparation.workers import Workers
from utils.errors import FlagPerfError

TRAINING = Path(benchmarks.__file__).parents[1]


def square(number: int) -> int:
    return number * number


def refuse_or_finish_late(late: str) -> None:
    """Without a name: fails, with a place and a remedy. With one: makes that file after a long time."""
    if not late:
        raise FlagPerfError("bad input", where="file, line 3", remedy="mend it")
    time.sleep(20)
    Path(late).touch()


def note_and_kill_self(folder: str) -> None:
    Path(folder, str(os.getpid())).touch()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("count", [1, 2])
def test_results_come_in_the_items_order(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    with Workers.started(count) as workers:
        assert workers.map("squares", square, range(7)) == [0, 1, 4, 9, 16, 25, 36]
    assert "7/7" in capsys.readouterr().err


def test_the_first_failure_ends_the_tasks_at_work_and_keeps_place_and_remedy(tmp_path: Path) -> None:
    late = tmp_path / "late"
    with pytest.raises(FlagPerfError) as error, Workers.started(2) as workers:
        workers.map("work", refuse_or_finish_late, ["", str(late)])
    assert str(error.value) == "file, line 3: bad input\n    -> mend it"
    assert not late.exists(), "it waited for the task at work"


def test_a_worker_that_is_killed_is_an_error_that_says_so(tmp_path: Path) -> None:
    with (
        pytest.raises(FlagPerfError, match="a worker process died during: draw"),
        Workers.started(2) as workers,
    ):
        workers.map("draw", note_and_kill_self, [str(tmp_path)])
    assert len(list(tmp_path.iterdir())) == 1


SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from benchmarks.common.preparation.workers import Workers

def work(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(600)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may have it ignored
    with Workers.started(2) as workers:
        workers.map("work", work, [sys.argv[1], sys.argv[1]])
"""


def alive(process: int) -> bool:
    """Running, not merely a zombie that waits to be reaped."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_workers_die_with_their_parent(tmp_path: Path, how: signal.Signals) -> None:
    script, notes = tmp_path / "script.py", tmp_path / "notes"
    script.write_text(SCRIPT)
    notes.mkdir()
    parent = subprocess.Popen(
        [sys.executable, str(script), str(notes)],
        env={**os.environ, "PYTHONPATH": str(TRAINING)},
        stderr=subprocess.DEVNULL,
    )
    while len(list(notes.iterdir())) < 2:
        assert parent.poll() is None
        time.sleep(0.05)
    parent.send_signal(how)
    parent.wait(timeout=120)
    workers = [int(path.name) for path in notes.iterdir()]
    deadline = time.monotonic() + 60
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(alive, workers))
