"""What is seen of real processes that write to ranks' logs: their states, and their stacks by either source."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import utils
from utils import stacks
from utils.stacks import FAULTHANDLER, PY_SPY, STACKS_FILE, RankState, ranks_of, read_stacks, stacks_in

TRAINING = Path(utils.__file__).parents[1]
PY_SPY_HERE = shutil.which(PY_SPY, path=str(Path(sys.executable).parent))
SCRIPT = """\
import subprocess, sys, time

from utils.stacks import answer_with_stacks


def waits():
    print("ready", flush=True)
    time.sleep(600)


if "answers" in sys.argv:
    answer_with_stacks()
if "child" in sys.argv:  # as a loader's process: it has the rank's log and environment
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
waits()
"""
Start = Callable[..., int]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a process that is rank `rank` to whoever looks; its PID."""
    groups = []

    def start(rank: int, *words: str, log: str = "", **more: str) -> int:
        env = {**os.environ, "PYTHONPATH": str(TRAINING), "RANK": str(rank), **more}
        with (tmp_path / (log or f"rank{rank}.out.log")).open("ab") as output:
            argv = [sys.executable, "-c", SCRIPT, *words]
            process = subprocess.Popen(argv, env=env, stdout=output, stderr=output, start_new_session=True)
        groups.append(process)
        return process.pid

    yield start
    for process in groups:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_until_ready(folder: Path, count: int) -> None:
    end = time.monotonic() + 60
    while sum(log.read_text().count("ready") for log in folder.glob("rank*.out.log")) < count:
        assert time.monotonic() < end, [log.read_text() for log in folder.glob("rank*.out.log")]
        time.sleep(0.02)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_for_state(pid: int, state: str) -> None:
    end = time.monotonic() + 60
    while state_of(pid) != state:
        assert time.monotonic() < end, state_of(pid)
        time.sleep(0.01)


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    wait_for_state(pid, "T")


def test_ranks_answer_by_themselves_where_there_is_no_py_spy(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    running, stopped, silent = start(0, "answers", "child"), start(1, "answers"), start(2)
    wait_until_ready(tmp_path, 3)
    for pid in (running, silent):
        wait_for_state(pid, "S")
    stop(stopped)
    seen = {state.rank: (state, text) for state, text in stacks_in(ranks_of(tmp_path))}
    assert [(state.pid, state.state, state.source) for state, _ in (seen[rank] for rank in range(3))] == [
        (running, "S", FAULTHANDLER),
        (stopped, "T", FAULTHANDLER),
        (silent, "S", ""),
    ]
    assert list(seen) == [0, 2, 1]  # what has to go on for a moment is asked last
    for rank in (0, 1):
        assert 'File "<string>", line 8 in waits' in seen[rank][1]
    assert seen[2][0].problem == "py-spy is not installed; it does not answer SIGUSR1"
    wait_for_state(stopped, "T")
    assert state_of(silent) == "S"  # one that would be ended by the signal was not sent it


@pytest.mark.skipif(PY_SPY_HERE is None, reason="py-spy is not installed")
def test_py_spy_looks_without_halting_or_waking_anybody(tmp_path: Path, start: Start) -> None:
    running, stopped = start(0), start(1)
    wait_until_ready(tmp_path, 2)
    wait_for_state(running, "S")
    stop(stopped)
    program = Path(stacks.__file__).read_bytes()
    done = subprocess.run(
        [sys.executable, "-I", "-", str(tmp_path), "20"], input=program, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    seen = {state.rank: (state, lines) for state, lines in read_stacks((tmp_path / STACKS_FILE).read_text())}
    assert [(state.pid, state.state, state.source) for state, _ in (seen[0], seen[1])] == [
        (running, "S", PY_SPY),
        (stopped, "T", PY_SPY),
    ]
    assert any("waits (<string>:8)" in line for line in seen[1][1])
    assert state_of(stopped) == "T"


def test_of_torchrun_its_ranks_are_taken_and_not_its_launcher(tmp_path: Path, start: Start) -> None:
    start(0, "child", log="rank0.out.log")
    workers = [start(rank, log="rank0.out.log", TORCHELASTIC_RUN_ID="none") for rank in (0, 1)]
    wait_until_ready(tmp_path, 3)
    assert [process.pid for process in ranks_of(tmp_path)] == workers


def test_a_process_of_another_user_is_no_rank(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where whoever looks could read it: it looks as root, by a number that is not its own here."""
    pid = start(0)
    wait_until_ready(tmp_path, 1)
    assert [process.pid for process in ranks_of(tmp_path)] == [pid]
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert ranks_of(tmp_path) == []


def test_nobody_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stacks.main([str(tmp_path), "20"]) == 1
    signal.alarm(0)
    assert "no process writes to a rank's log" in capsys.readouterr().err


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.write_text("mine")
    (tmp_path / STACKS_FILE).symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        stacks.main([str(tmp_path), "20"])
    signal.alarm(0)
    assert target.read_text() == "mine"


@pytest.mark.parametrize(
    "line",
    [
        '[RankState] {"rank": -1, "pid": 1, "state": "S", "wchan": ""}',
        '[RankState] {"rank": true, "pid": 1, "state": "S", "wchan": ""}',
        '[RankState] {"rank": 1, "pid": 1, "state": ["T"], "wchan": ""}',
        '[RankState] {"rank": 1, "pid": 1, "state": "S", "wchan": "%s"}' % ("x" * 1000),
        '[RankState] {"rank": 1}',
        "[RankState] " + "[" * 100_000,
        "Thread 1",
    ],
)
def test_what_is_no_state_is_passed_over(line: str) -> None:
    state = RankState(0, 7, "S", "futex")
    assert read_stacks(f"{line}\n{state.line()}\n  Thread 7\n{line}") == [(state, ["Thread 7"])]


def test_a_rank_that_is_named_again_counts_once() -> None:
    first, again, other = (RankState(rank, pid, "S", "futex") for rank, pid in ((0, 7), (0, 8), (1, 9)))
    text = "\n".join(f"{state.line()}\n  Thread {state.pid}" for state in (first, again, other, again))
    assert read_stacks(text) == [(first, ["Thread 7"]), (other, ["Thread 9"])]
