"""Ranks of tests are forks of a process that has imported their framework once: seconds of each rank else.

`warm_python` takes the place of a rank's `python`: the script runs in a fork of warm_server.py, with the arguments,
environment, folder and output that were meant for it, and what was started in its place ends as the script does. It is
not in the process group or namespace that it was started in: what a test has to say of those, or of a rank's own
start, it says with the true one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = Path(__file__).with_name("warm_server.py")
MODULES = {
    "pytorch": (
        "torch",
        "torch.distributed",
        "safetensors.torch",
        "torch._dynamo",
    ),  # that by the first optimizer
    "paddle": ("paddle", "paddle.distributed"),
}
# Small, since it is started as often as a rank. A signal that would end a rank is passed on to it.
EXECUTABLE = """#!{python} -IS
import json, os, signal, socket, sys
if sys.argv[1] != "-u":  # the launcher, which starts the ranks
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
asked.connect({address!r})
job = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode() + b"\\n"
socket.send_fds(asked, [job[:1]], [0, 1, 2])
asked.sendall(job[1:])
answers = asked.makefile()
rank = int(answers.readline())
signal.signal(signal.SIGTERM, lambda *_: os.kill(rank, signal.SIGTERM))
code = int(answers.readline())
signal.signal(signal.SIGTERM, signal.SIG_DFL)
if code < 0:
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What starts a rank of PyTorch."""
    yield from _serving(tmp_path_factory.mktemp("warm"), "pytorch")


@pytest.fixture(scope="session")
def warm_paddle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What starts a rank of Paddle."""
    yield from _serving(tmp_path_factory.mktemp("warm"), "paddle")


def _serving(folder: Path, framework: str) -> Iterator[str]:
    address, executable = folder / "socket", folder / "python"
    executable.write_text(EXECUTABLE.format(python=sys.executable, address=str(address)))
    executable.chmod(0o755)
    command = [sys.executable, "-u", str(SERVER), str(address), *MODULES[framework]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin and server.stdout
        assert server.stdout.readline() == b"ready\n"
        yield str(executable)
        server.stdin.close()
