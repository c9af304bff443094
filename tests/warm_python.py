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
from dataclasses import dataclass
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
EXECUTABLE = """#!{interpreter} -IS
import json, os, signal, socket, sys
if sys.argv[1] != "-u":  # the launcher, which starts the ranks
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
asked.connect({address!r})
job = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd(), {packages!r}]).encode() + b"\\n"
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


@dataclass(frozen=True)
class Warm:
    """A server of forks, and the folder for what takes the place of a Python."""

    folder: Path

    @property
    def address(self) -> Path:
        """The socket that it listens at."""
        return self.folder / "socket"

    def of(self, python: str, *packages: str) -> str:
        """What takes the place of `python`, whose own folders of packages are these beside the server's."""
        executable = self.folder / f"python{len(list(self.folder.iterdir()))}"
        text = EXECUTABLE.format(
            interpreter=sys.executable, python=python, address=str(self.address), packages=packages
        )
        executable.write_text(text)
        executable.chmod(0o755)
        return str(executable)


@pytest.fixture(scope="session")
def warm_pytorch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """A server that has imported PyTorch."""
    yield from _serving(tmp_path_factory.mktemp("warm"), "pytorch")


@pytest.fixture(scope="session")
def warm_python(warm_pytorch: Warm) -> str:
    """What starts a rank of PyTorch."""
    return warm_pytorch.of(sys.executable)


@pytest.fixture(scope="session")
def warm_paddle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What starts a rank of Paddle."""
    for warm in _serving(tmp_path_factory.mktemp("warm"), "paddle"):
        yield warm.of(sys.executable)


def _serving(folder: Path, framework: str) -> Iterator[Warm]:
    warm = Warm(folder)
    command = [sys.executable, "-u", str(SERVER), str(warm.address), *MODULES[framework]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin and server.stdout
        assert server.stdout.readline() == b"ready\n"
        yield warm
        server.stdin.close()
