"""The launcher of a node's ranks: real processes, their environment, and what it does and says when they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from utils import node
from utils.node import PREFIX, RankEnd, read_rank_ends

TRAINING = Path(__file__).resolve().parents[2] / "training"
PATIENCE_S = 60.0
WAIT = "import time; time.sleep(600)"


def start(log_dir: Path, code: str, *options: str, nproc: int = 2) -> subprocess.Popen[str]:
    """Two nodes, of which this is the second."""
    where = f"--nnodes 2 --node-rank 1 --nproc {nproc} --master-addr 10.0.0.1 --master-port 29501".split()
    launcher = [sys.executable, "-m", "utils.node", *where, "--log-dir", str(log_dir), *options]
    return subprocess.Popen(
        [*launcher, "--", sys.executable, "-u", "-c", code],
        env={**os.environ, "PYTHONPATH": str(TRAINING)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(log_dir: Path, code: str, *options: str, nproc: int = 2) -> tuple[int, str]:
    process = start(log_dir, code, *options, nproc=nproc)
    output, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, output


def wait_for(log: Path, text: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not (log.is_file() and text in log.read_text()):
        assert time.monotonic() < end, f"{log} never held {text!r}"
        time.sleep(0.05)


def of_rank(rank: int, action: str, otherwise: str = WAIT) -> str:
    """Code in which one rank does something and the others do something else."""
    return f"import os, signal, sys\nif os.environ['RANK'] == '{rank}':\n    {action}\nelse:\n    {otherwise}"


def test_every_rank_has_the_launch_contracts_environment(tmp_path: Path) -> None:
    names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK MASTER_ADDR MASTER_PORT MINE PORT"
    code = f"import os; print(*(os.environ[name] for name in {names.split()!r}))"
    result, output = run(tmp_path, code, "--set", "MINE=a={rank}/{world_size}", "--set", "PORT={own_port}")
    assert result == 0
    assert (tmp_path / "rank2.out.log").read_text() == "2 0 4 2 1 10.0.0.1 29501 a=2/4 29501\n"
    assert (tmp_path / "rank3.out.log").read_text() == "3 1 4 2 1 10.0.0.1 29501 a=3/4 29502\n"
    ends = {end.rank: end for end in read_rank_ends(output)}
    assert ends == {2: RankEnd(2, 0, 0, False), 3: RankEnd(3, 1, 0, False)}


def test_both_outputs_go_to_the_ranks_log_and_nowhere_else(tmp_path: Path) -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr)"
    (tmp_path / "rank1.out.log").write_text("an earlier start\n")
    result, output = run(tmp_path, code, nproc=1)
    assert result == 0
    assert (tmp_path / "rank1.out.log").read_text() == "an earlier start\nout\nerr\n"
    assert all(line.startswith(("rank 1: process", PREFIX)) for line in output.splitlines())


def test_no_process_stands_between_the_launcher_and_the_script(tmp_path: Path) -> None:
    """A signal to the rank is a signal to the script, and its exit code the script's."""
    _, output = run(tmp_path, "import os; print(f'rank 1: process {os.getpid()}')", nproc=1)
    assert output.splitlines()[0] == (tmp_path / "rank1.out.log").read_text().strip()


@pytest.mark.parametrize(
    ("action", "code", "result"),
    [
        ("sys.exit(7)", 7, 7),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, 137),
        ("os.abort()", -6, 134),
    ],
)
def test_the_first_failure_ends_the_node_and_is_named_first(
    tmp_path: Path, action: str, code: int, result: int
) -> None:
    ended, output = run(tmp_path, of_rank(4, action), nproc=3)
    assert ended == result
    first, *others = read_rank_ends(output)
    assert first == RankEnd(4, 1, code, stopped=False)
    assert {end.rank for end in others} == {3, 5}
    assert all(end.stopped and end.exit_code == -signal.SIGTERM for end in others)


def after(log: Path, text: str, action: str) -> str:
    """Code of a rank that does something once `text` stands in the log of another."""
    return (
        f"import pathlib, time\n    log = pathlib.Path({str(log)!r})\n"
        f"    while not (log.exists() and {text!r} in log.read_text()): time.sleep(0.05)\n    {action}"
    )


def test_peers_of_a_rank_that_is_aborted_at_its_exit_may_finish(tmp_path: Path) -> None:
    aborts = after(tmp_path / "rank2.out.log", "here", "os.abort()")
    result, output = run(
        tmp_path, of_rank(3, aborts, "import time; print('here'); time.sleep(0.5); print('done')")
    )
    assert result == 134
    assert read_rank_ends(output) == (RankEnd(3, 1, -6, False), RankEnd(2, 0, 0, False))
    assert (tmp_path / "rank2.out.log").read_text() == "here\ndone\n"


def test_a_rank_that_is_done_is_no_failure_and_the_others_go_on(tmp_path: Path) -> None:
    result, output = run(tmp_path, of_rank(2, "pass", "import time; time.sleep(1); print('done')"))
    assert result == 0
    assert [end.rank for end in read_rank_ends(output)] == [2, 3]
    assert (tmp_path / "rank3.out.log").read_text() == "done\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_launcher_ends_its_ranks(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, f"print('here'); {WAIT}")
    for rank in (2, 3):
        wait_for(tmp_path / f"rank{rank}.out.log", "here")
    process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    assert all(end.stopped for end in read_rank_ends(output))
    assert f"ended by signal {number.value}" in output


def test_a_rank_that_will_not_stop_is_killed(tmp_path: Path) -> None:
    stubborn = f"signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True)\n    {WAIT}"
    fails = after(tmp_path / "rank2.out.log", "deaf", "sys.exit(5)")
    result, output = run(tmp_path, of_rank(2, stubborn, fails))
    assert result == 5
    assert read_rank_ends(output) == (RankEnd(3, 1, 5, False), RankEnd(2, 0, -9, True))


def test_wrong_use_says_what_is_right() -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "utils.node", "--nnodes", "1", "--", "true"],
        env={**os.environ, "PYTHONPATH": str(TRAINING)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert completed.returncode == 2
    assert "required: --node-rank, --nproc" in completed.stderr


def test_what_a_task_writes_into_the_launchers_log_is_no_end() -> None:
    """The log lies where the task may write."""
    true = RankEnd(3, 1, 5, False)
    values = (
        "{",
        "5",
        "{}",
        "[" * 200_000,
        '{"rank": 1' + "0" * 400 + "}",
        true.line()[len(PREFIX) :].replace("5", '"x"'),
    )
    lines = [*(f"{PREFIX}{value}" for value in values), true.line()]
    assert read_rank_ends("\n".join(lines)) == (true,)
    huge = true.line().replace('"rank": 3', '"rank": 3' + "0" * 400)
    assert read_rank_ends(huge) == ()


def test_a_full_disk_is_said_by_the_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank whose log has no room cannot say it."""
    assert node.no_room(str(tmp_path)) == ""
    monkeypatch.setattr(node, "LAST_WORDS", 2**80)
    assert node.no_room(str(tmp_path)).startswith("no space left on device: ")
