"""The launcher of a search's roles: real processes, who is started again, and whose end is the end of all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from utils.case_form import ROLES_TOKEN
from utils.node import read_rank_ends
from utils.roles import worker_token

TRAINING = Path(__file__).resolve().parents[2] / "training"
PATIENCE_S = 60.0
WAIT = "import time; time.sleep(600)"
NAMES = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK FLAGPERF_SEARCH_WORKER FLAGPERF_SEARCH_START"


def start(
    tmp_path: Path, controller: str, worker: str, *options: str, node: int = 0
) -> subprocess.Popen[str]:
    """Two nodes of two ranks, of which this is one; the controller and the script are the given code."""
    package = tmp_path / "controller_of_the_test" / "benchmarks" / "search"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "controller.py").write_text(controller)
    (tmp_path / "script.py").write_text(worker)
    where = f"--nnodes 2 --node-rank {node} --nproc 2 --master-addr 127.0.0.1 --master-port 29501".split()
    launcher = [sys.executable, "-m", "utils.roles", *where, "--log-dir", str(tmp_path), *options]
    path = f"{package.parents[1]}{os.pathsep}{TRAINING}"
    return subprocess.Popen(
        [*launcher, "--", sys.executable, "-u", str(tmp_path / "script.py"), "--data_dir", "/data"],
        env={**os.environ, "PYTHONPATH": path, ROLES_TOKEN: "a-token-of-this-run"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, output


def after(*logs: Path) -> str:
    """Code that goes on once something stands in these logs."""
    names = [str(log) for log in logs]
    return (
        "import pathlib, time\n"
        f"logs = [pathlib.Path(name) for name in {names!r}]\n"
        "while not all(log.exists() and log.read_text() for log in logs): time.sleep(0.05)\n"
    )


def told(log: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]


TELL = f"import json, os; print(json.dumps({{name: os.environ[name] for name in {NAMES.split()!r}}}), flush=True)\n"


@pytest.mark.parametrize(("ranks_per_worker", "node"), [(0, 0), (1, 0), (1, 1)])
def test_workers_have_ranks_and_numbers_of_their_own(
    tmp_path: Path, ranks_per_worker: int, node: int
) -> None:
    both = after(*(tmp_path / f"rank{2 * node + place}.out.log" for place in (0, 1)))
    process = start(tmp_path, both, TELL + both, "--ranks-per-worker", str(ranks_per_worker), node=node)
    code, output = ended(process)
    assert code == 0, output
    values = [list(told(tmp_path / f"rank{2 * node + place}.out.log")[0].values()) for place in (0, 1)]
    if ranks_per_worker:
        workers = [str(2 * node), str(2 * node + 1)]
        assert values == [["0", str(place), "1", "2", str(node), workers[place], "1"] for place in (0, 1)]
    else:
        assert values == [[str(place), str(place), "2", "2", "0", "0", "1"] for place in (0, 1)]


def test_the_controllers_end_ends_the_first_node_with_its_code(tmp_path: Path) -> None:
    controller = after(tmp_path / "rank0.out.log") + "import sys; print(sys.argv[1:]); sys.exit(7)"
    code, output = ended(start(tmp_path, controller, TELL + WAIT))
    assert code == 7
    assert (tmp_path / "controller.out.log").read_text() == "['--data_dir', '/data']\n"
    assert {end.exit_code for end in read_rank_ends(output)} == {-signal.SIGTERM}


def test_the_controller_knows_where_to_listen_and_how_many_workers_there_are(tmp_path: Path) -> None:
    names = [
        "MASTER_ADDR",
        "MASTER_PORT",
        *(f"FLAGPERF_SEARCH_{name}" for name in ("WORKERS", "RANKS", "NODES", "PEAKS")),
    ]
    controller = f"import os; print([os.environ[name] for name in {names!r}])"
    ended(start(tmp_path, controller, "", "--ranks-per-worker", "1", "--peaks", "{}"))
    assert (tmp_path / "controller.out.log").read_text() == "['127.0.0.1', '29501', '4', '1', '2', '{}']\n"


def test_each_worker_has_a_token_of_its_own_and_the_controller_the_runs(tmp_path: Path) -> None:
    tell = f"import os; print(os.environ[{ROLES_TOKEN!r}], flush=True)\n"
    logs = [tmp_path / f"rank{place}.out.log" for place in (0, 1)]
    code, output = ended(start(tmp_path, after(*logs) + tell, tell + WAIT, "--ranks-per-worker", "1"))
    assert code == 0, output
    assert (tmp_path / "controller.out.log").read_text() == "a-token-of-this-run\n"
    assert [log.read_text() for log in logs] == [
        f"{worker_token('a-token-of-this-run', worker)}\n" for worker in (0, 1)
    ]
    assert worker_token("a", 0)[1:] != worker_token("a", 1)[1:]


def test_a_worker_that_fails_is_started_again_and_then_done_without(tmp_path: Path) -> None:
    worker = TELL + f"if os.environ['FLAGPERF_SEARCH_WORKER'] == '1': os.kill(os.getpid(), 9)\n{WAIT}"
    process = start(tmp_path, WAIT, worker, "--ranks-per-worker", "1")
    lines = []
    assert process.stdout
    for line in process.stdout:
        lines.append(line)
        if "done without" in line:
            break
    assert lines[-1] == "worker 1: is done without, after 4 starts\n"
    assert [entry["FLAGPERF_SEARCH_START"] for entry in told(tmp_path / "rank1.out.log")] == [
        "1",
        "2",
        "3",
        "4",
    ]
    assert process.poll() is None  # the controller and the other worker go on
    process.terminate()
    code, _ = ended(process)
    assert code == 128 + signal.SIGTERM


def test_a_node_whose_workers_all_fail_says_so_and_one_whose_search_is_over_does_not(tmp_path: Path) -> None:
    for name, worker, expected in (("fail", "import sys; sys.exit(3)", 3), ("over", "", 0)):
        (tmp_path / name).mkdir()
        code, output = ended(start(tmp_path / name, WAIT, worker, node=1))
        assert code == expected, output
        assert not (tmp_path / name / "controller.out.log").exists()


def test_the_end_of_a_workers_first_rank_is_the_workers(tmp_path: Path) -> None:
    """It knows that the search is over, while the other waits for it in a collective operation."""
    worker = TELL + f"if os.environ['RANK'] == '1':\n    {WAIT}\n" + after(tmp_path / "rank3.out.log")
    code, output = ended(start(tmp_path, WAIT, worker, node=1))
    assert code == 0, output
    assert [(end.rank, end.exit_code, end.stopped) for end in read_rank_ends(output)] == [
        (2, 0, False),
        (3, -signal.SIGTERM, True),
    ]


def test_a_signal_ends_all_in_order(tmp_path: Path) -> None:
    process = start(tmp_path, "print('here', flush=True)\n" + WAIT, TELL + WAIT)
    end = time.monotonic() + PATIENCE_S
    while not all(
        (tmp_path / name).exists() and (tmp_path / name).read_text()
        for name in ("rank0.out.log", "rank1.out.log", "controller.out.log")
    ):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.terminate()
    code, output = ended(process)
    assert code == 128 + signal.SIGTERM
    assert "controller: exit code -15" in output
    assert {item.exit_code for item in read_rank_ends(output)} == {-signal.SIGTERM}


@pytest.mark.parametrize(
    ("options", "token", "says"),
    [(["--ranks-per-worker", "3"], "x" * 20, "does not divide"), ([], "", f"{ROLES_TOKEN} is not set")],
)
def test_what_cannot_be_is_refused_before_anything_is_started(
    options: list[str], token: str, says: str
) -> None:
    where = "--nnodes 1 --node-rank 0 --nproc 2 --master-addr a --master-port 1 --log-dir"
    words = [
        sys.executable,
        "-m",
        "utils.roles",
        *where.split(),
        "/nowhere",
        *options,
        "--",
        "python",
        "script.py",
    ]
    environment = {**os.environ, "PYTHONPATH": str(TRAINING), ROLES_TOKEN: token}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert says in done.stderr
