"""`run.py serve` by real connections: who is slow, many or sends what no browser does keeps nobody out."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from run_benchmarks.history.connections import LONGEST_HEAD, MOST_CONNECTIONS
from tests.connections import is_open

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 60.0
GET = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
SERVE = """\
import sys
from run_benchmarks.history import connections, server, site
from run_benchmarks.verbs import main

def wait_and_fail(*_):
    print("making", flush=True)
    raise OverflowError(sys.stdin.read())

{change}
sys.exit(main(["serve", "--log-path", sys.argv[1], "--port", "0"]))
"""


@dataclass(frozen=True)
class Served:
    """A server that runs; what it complains of stands in `log`."""

    process: subprocess.Popen[str]
    port: int
    log: Path

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def get(self) -> int:
        address = f"http://127.0.0.1:{self.port}/"
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
            return int(answer.status)

    def end(self) -> str:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE_S) == 0
        return self.log.read_text()


@contextmanager
def serving(folder: Path, change: str = "") -> Iterator[Served]:
    """With a line of Python that changes the server before it begins."""
    (folder / "result").mkdir()
    command = [sys.executable, "-c", SERVE.format(change=change), str(folder / "result")]
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT / "training")}
    env.pop("FLAGPERF_SERVE_TOKEN", None)
    with (folder / "log").open("w") as log:
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True, env=env)
    assert process.stdout
    with process:
        try:
            port = int(process.stdout.readline().strip().rstrip("/").rpartition(":")[2])
            process.stdout.readline()
            yield Served(process, port, folder / "log")
        finally:
            process.kill()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as made:
        yield made


def wait_until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.05)


def takes_more(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"a")
    except ConnectionError:
        return False
    return True


def test_connections_that_are_held_leave_room_for_others(served: Served) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(served.connect()) for _ in range(4 * MOST_CONNECTIONS)]
        wait_until(lambda: sum(map(is_open, held)) <= MOST_CONNECTIONS, "the oldest make room")
        assert served.get() == 200
    assert served.end().splitlines() == ["ended"]


def test_a_page_that_is_being_made_is_not_given_up_for_strangers(tmp_path: Path) -> None:
    with serving(tmp_path, "site.select = wait_and_fail") as served, served.connect() as waiting:
        assert served.process.stdout and served.process.stdin
        waiting.sendall(GET + b"\r\n")
        assert served.process.stdout.readline() == "making\n"
        with ExitStack() as stack:
            held = [stack.enter_context(served.connect()) for _ in range(2 * MOST_CONNECTIONS)]
            wait_until(lambda: sum(map(is_open, held)) < MOST_CONNECTIONS, "the oldest make room")
        served.process.stdin.close()
        answer = b"".join(iter(lambda: waiting.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 500") and b"A fault of FlagPerf itself: OverflowError" in answer
        assert served.end().splitlines() == ["ended"]


@pytest.mark.parametrize(
    "request_",
    [
        GET + b"Transfer-Encoding: chunked\r\n\r\n" + 10_000 * b"1\r\n \r\n" + b"0\r\n\r\n",
        GET + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\n",
        GET + b"Content-Length: 5\r\n\r\n",
        GET + LONGEST_HEAD // 3 * b"a:\r\n" + b"\r\n",
        2 * (GET + b"\r\n"),
        b"\x16\x03\x01\r\n\r\n",
    ],
    ids=["in chunks", "a bad chunk", "a body", "a long head", "before the answer", "no HTTP"],
)
def test_what_no_browser_sends_is_not_answered(served: Served, request_: bytes) -> None:
    with served.connect() as connection, suppress(ConnectionError):
        connection.sendall(request_)
        assert connection.recv(100) == b""
    assert served.get() == 200
    assert served.end().splitlines() == ["ended"]


def test_who_drips_a_request_is_closed(tmp_path: Path) -> None:
    with serving(tmp_path, "connections.STALLED_AFTER_S = 0.5") as served:
        with served.connect() as dripping:
            dripping.sendall(GET)
            wait_until(lambda: not takes_more(dripping), "it is closed")
        assert served.get() == 200


def test_who_reads_no_answer_is_closed(tmp_path: Path) -> None:
    change = (
        "site._page = lambda *_, **__: site.HTMLResponse(b' ' * 2**24); connections.STALLED_AFTER_S = 0.5"
    )
    with serving(tmp_path, change) as served, socket.socket() as silent:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.settimeout(PATIENCE_S)
        silent.connect(("127.0.0.1", served.port))
        silent.sendall(GET + b"\r\n")
        wait_until(lambda: not takes_more(silent), "it is closed")


def test_ctrl_c_while_a_page_is_made_is_told_without_a_traceback(tmp_path: Path) -> None:
    with serving(tmp_path, "site.select = wait_and_fail; server.GRACE_S = 0") as served:
        assert served.process.stdout and served.process.stdin
        with served.connect() as waiting:
            waiting.sendall(GET + b"\r\n")
            assert served.process.stdout.readline() == "making\n"
            served.process.send_signal(signal.SIGINT)
            with pytest.raises(ConnectionRefusedError):
                while True:
                    served.connect().close()
            time.sleep(1)  # until it has been cancelled
            served.process.stdin.close()
            assert served.process.wait(PATIENCE_S) == 0
        assert served.log.read_text().splitlines() == ["ended"]
