"""What runs in every image runs on the Python of old ones too: launcher, ranks and monitors.

Images of existing vendor folders have Python 3.8 and 3.9 (PyTorch 1.8 to 1.13). Cases that use the shared
driver need 3.10.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import utils
from run_benchmarks.stages.identity import new_identity
from utils import pass_on, stacks
from utils.inventory import INVENTORY_FILE
from utils.node import read_rank_ends

TRAINING = Path(utils.__file__).parents[1]
SCRIPT = """\
import json, os, signal, sys

print("[TOLD]", json.dumps({name: os.environ[name] for name in ("RANK", "LOCAL_RANK", "NODE_RANK")}), flush=True)
if sys.argv[1:] == [os.environ["RANK"]]:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _works(command: str) -> bool:
    """pyenv leaves commands for versions that it is not told to use: these are there and do not run."""
    done = subprocess.run([command, "-c", ""], capture_output=True, check=False)
    return done.returncode == 0


def _find(version: str) -> str | None:
    homes = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    candidates = [shutil.which(f"python{version}"), *(str(home) for home in homes)]
    return next((command for command in candidates if command and _works(command)), None)


@pytest.fixture(params=["3.8", "3.9"])
def old_python(request: pytest.FixtureRequest) -> str:
    command = _find(request.param)
    if command is None:
        pytest.skip(f"there is no Python {request.param} on this machine")
    return command


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(TRAINING), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def _launch(python: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT)
    where = ("--nnodes", "1", "--node-rank", "0", "--nproc", "2", "--master-addr", "127.0.0.1")
    port = ("--master-port", "29501", "--log-dir", str(folder))
    return _run(python, "-m", "utils.node", *where, *port, "--", python, str(script), *words)


def test_ranks_are_started(old_python: str, tmp_path: Path) -> None:
    done = _launch(old_python, tmp_path)
    assert done.returncode == 0, done.stderr
    for rank in ("0", "1"):
        said = (tmp_path / f"rank{rank}.out.log").read_text()
        told = {"RANK": rank, "LOCAL_RANK": rank, "NODE_RANK": "0"}
        assert json.loads(said.partition("[TOLD]")[2]) == told


def test_a_rank_that_is_killed_is_told(old_python: str, tmp_path: Path) -> None:
    done = _launch(old_python, tmp_path, "1")
    assert done.returncode == 128 + 9
    assert (1, -9) in [(end.rank, end.exit_code) for end in read_rank_ends(done.stdout + done.stderr)]


def test_ranks_that_hang_are_looked_at(old_python: str, tmp_path: Path) -> None:
    code = (
        "import time, utils.stacks as s; s.answer_with_stacks(); print('ready', flush=True); time.sleep(600)"
    )
    env = {**os.environ, "PYTHONPATH": str(TRAINING), "PYTHONDONTWRITEBYTECODE": "1", "RANK": "3"}
    path = tmp_path / "rank3.out.log"
    with (
        path.open("ab") as log,
        subprocess.Popen([old_python, "-c", code], env=env, stdout=log, stderr=log) as rank,
    ):
        try:
            while rank.poll() is None and "ready" not in path.read_text():
                time.sleep(0.02)
            program = Path(stacks.__file__).read_bytes()
            command = [old_python, "-I", "-", str(tmp_path), "20"]
            done = subprocess.run(command, input=program, capture_output=True, timeout=60, check=False)
        finally:
            rank.kill()
    assert done.returncode == 0, done.stderr
    ((state, lines),) = stacks.read_stacks((tmp_path / stacks.STACKS_FILE).read_text())
    assert state.rank == 3 and any("<module>" in line for line in lines)


def test_nodes_pass_a_file_on(old_python: str, tmp_path: Path) -> None:
    """From this Python to the old one, and from there on."""
    content, (certificate, key) = b"content" * 1000, new_identity()
    ways = {
        (sys.executable, "first"): (old_python, "second"),
        (old_python, "second"): (sys.executable, "third"),
    }
    (tmp_path / "first").write_bytes(content)
    for (giving, here), (getting, there) in ways.items():
        served = f"serve({str(tmp_path / here)!r}, {certificate + key!r}, 'token')"
        with _passing(giving, served) as server:
            assert server.stdout
            whom = f"'127.0.0.1', {int(server.stdout.readline())}, {certificate!r}, 'token'"
            what = f"{str(tmp_path / there)!r}, {len(content)}, {hashlib.sha256(content).hexdigest()!r}"
            with _passing(getting, f"fetch({whom}, {what})") as client:
                assert client.wait(60) == server.wait(60) == 0
    assert (tmp_path / "third").read_bytes() == content


def _passing(python: str, call: str) -> subprocess.Popen[bytes]:
    pipe, text = subprocess.PIPE, Path(pass_on.__file__).read_bytes() + f"\n{call}\n".encode()
    process = subprocess.Popen([python, "-I", "-c", pass_on.BOOT], stdin=pipe, stdout=pipe)
    assert process.stdin
    process.stdin.write(f"{len(text)}\n".encode() + text)
    process.stdin.flush()
    return process


def test_the_node_is_sampled(old_python: str, tmp_path: Path) -> None:
    command = ("-m", "utils.monitors", "--log-dir", str(tmp_path), "--interval", "0.05", "--ticks", "3")
    done = _run(old_python, *command, "--vendor-dir", str(TRAINING / "nvidia"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cpu_monitor.log").stat().st_size and (tmp_path / "telemetry.jsonl").stat().st_size
    log = (tmp_path / "monitor.log").read_text()
    assert "cpu: not measured: the module psutil is not installed" in log
    assert "the module pynvml is not installed" in log, "a vendor's file is read by that Python too"
    inventory = json.loads((tmp_path / INVENTORY_FILE).read_text())
    assert inventory["software"]["python"].startswith("3.") and inventory["host"]["kernel"]
    assert "the module pynvml is not installed" in inventory["host"]["unmeasured"]["accelerators"]
