"""The program by which one node gives a file to another: two processes of this machine, and what strangers may do."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from run_benchmarks.stages.identity import new_identity
from utils import pass_on

PROGRAM = Path(pass_on.__file__).read_text()
FILE = os.urandom(2_500_000)
SHA256 = hashlib.sha256(FILE).hexdigest()
TOKEN = "0123456789abcdef" * 4
CERTIFICATE, KEY = new_identity()
IMPATIENT = "STEP_S = 1\n"


class Running:
    """A process of the program, which has its input as long as the controller would give it."""

    def __init__(self, call: str, python: str = sys.executable) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [python, "-I", "-c", pass_on.BOOT], stdin=pipe, stdout=pipe, stderr=pipe
        )
        text = f"{PROGRAM}\n{call}\n".encode()
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{len(text)}\n".encode() + text)
        self.process.stdin.flush()

    def port(self) -> int:
        assert self.process.stdout
        return int(self.process.stdout.readline())

    def end(self) -> tuple[int, str]:
        """How it ended by itself, and its last words."""
        assert self.process.stderr
        errors = self.process.stderr.read().decode()
        code = self.process.wait(60)
        return code, errors

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


Start = Callable[..., Running]


@pytest.fixture
def start() -> Iterator[Start]:
    begun: list[Running] = []

    def begin(call: str, python: str = sys.executable) -> Running:
        begun.append(Running(call, python))
        return begun[-1]

    yield begin
    for each in begun:
        each.close()


def serve(path: Path, more: str = "") -> str:
    path.write_bytes(FILE)
    return f"{more}serve({str(path)!r}, {CERTIFICATE + KEY!r}, {TOKEN!r})"


def fetch(port: int, path: Path, more: str = "", **options: object) -> str:
    given = {
        "address": "127.0.0.1",
        "port": port,
        "certificate": CERTIFICATE,
        "token": TOKEN,
        "path": str(path),
        "size": len(FILE),
        "sha256": SHA256,
        **options,
    }
    return f"{more}fetch(**{given!r})"


def test_a_node_gets_the_file_from_another_and_both_end(start: Start, tmp_path: Path) -> None:
    server = start(serve(tmp_path / "served"))
    client = start(fetch(server.port(), tmp_path / "got"))
    assert client.end() == (0, "") and server.end() == (0, "")
    assert (tmp_path / "got").read_bytes() == FILE
    assert (tmp_path / "got").stat().st_mode & 0o777 == 0o600


def test_an_empty_file_is_one_too(start: Start, tmp_path: Path) -> None:
    call = serve(tmp_path / "served")
    (tmp_path / "served").write_bytes(b"")
    client = start(
        fetch(start(call).port(), tmp_path / "got", size=0, sha256=hashlib.sha256(b"").hexdigest())
    )
    assert client.end() == (0, "") and (tmp_path / "got").read_bytes() == b""


def silent(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


def as_stranger(port: int, token: bytes) -> bytes:
    """What the server answers to one who got as far as the token."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with silent(port) as plain, context.wrap_socket(plain) as peer:
        peer.sendall(token)
        return peer.recv(1)


def test_strangers_get_nothing_and_hold_up_nobody(start: Start, tmp_path: Path) -> None:
    """Silent ones, more than are looked at at once; garbage without end; a token that is wrong, or too long."""
    server = start(serve(tmp_path / "served", "MOST_STRANGERS, STRANGER_S = 4, 3.0\n"))
    port = server.port()
    waiting = [silent(port) for _ in range(6)]
    with silent(port) as garbage, pytest.raises(OSError):
        for _ in range(2**10):
            garbage.sendall(b"GET / HTTP/1.1\r\n" + b"x" * 2**20)
    for token in (b"f" * len(TOKEN), b"f" * 2**16):
        with suppress(OSError):  # where it is cut off
            assert as_stranger(port, token) == b""
    client = start(fetch(port, tmp_path / "got"))
    assert client.end() == (0, "") and server.end()[0] == 0
    assert (tmp_path / "got").read_bytes() == FILE
    for each in waiting:
        each.close()


def test_who_comes_second_with_the_token_gets_nothing(start: Start, tmp_path: Path) -> None:
    server = start(serve(tmp_path / "served"))
    port = server.port()
    assert start(fetch(port, tmp_path / "got")).end() == (0, "")
    code, errors = start(fetch(port, tmp_path / "again")).end()
    assert code == 1 and "refused" in errors and not (tmp_path / "again").exists()


def test_a_server_to_which_nobody_comes_ends(start: Start, tmp_path: Path) -> None:
    code, errors = start(serve(tmp_path / "served", "WAIT_S = 0.05\n")).end()
    assert code == 1 and "nobody came" in errors


def test_both_end_with_their_input(start: Start, tmp_path: Path) -> None:
    """With the controller, or the way to it, whatever they wait for."""
    patient = "WAIT_S, STEP_S = 600.0, 600\n"
    server = start(serve(tmp_path / "served", patient))
    with hostile(lambda peer: peer.recv(1)) as port:
        client = start(fetch(port, tmp_path / "got", patient))
        server.port()
        for each in (server, client):
            assert each.process.stdin
            each.process.stdin.close()
            assert each.process.wait(60) == 1


@contextmanager
def hostile(answer: Callable[[ssl.SSLSocket], object], certificate: str = CERTIFICATE, key: str = KEY):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """A server that has the certificate, and answers the token as it likes; its port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            try:
                context = pass_on._as_server(certificate + key)
                with context.wrap_socket(listener.accept()[0], server_side=True) as peer:
                    peer.recv(len(TOKEN))
                    answer(peer)
            except OSError:  # the other side has had enough
                pass

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield listener.getsockname()[1]


def dripping(peer: ssl.SSLSocket) -> None:
    for place in range(len(FILE)):
        peer.sendall(FILE[place : place + 1])
        threading.Event().wait(0.01)


HOSTILE: dict[str, tuple[Callable[[ssl.SSLSocket], object], str]] = {
    "other bytes": (lambda peer: peer.sendall(bytes(len(FILE))), "sent other bytes"),
    "one bit": (lambda peer: peer.sendall(bytes([FILE[0] ^ 1]) + FILE[1:]), "sent other bytes"),
    "closes in the middle": (lambda peer: peer.sendall(FILE[:1_000_000]), "broke off after 1000000 of 2500000"),
    "nothing": (lambda peer: threading.Event().wait(60), "too slow"),
    "drips": (dripping, "too slow"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_hostile_node_sends_is_not_kept(name: str, start: Start, tmp_path: Path) -> None:
    answer, said = HOSTILE[name]
    with hostile(answer) as port:
        code, errors = start(fetch(port, tmp_path / "got", IMPATIENT if "slow" in said else "")).end()
    assert code == 1 and said in errors
    assert not (tmp_path / "got").exists()


def test_of_what_is_too_long_no_byte_is_kept(start: Start, tmp_path: Path) -> None:
    def without_end(peer: ssl.SSLSocket) -> None:
        peer.sendall(FILE + bytes(2**20))  # no record ends where the file does
        while True:
            peer.sendall(bytes(2**20))

    with hostile(without_end) as port:
        assert start(fetch(port, tmp_path / "got")).end() == (0, "")
    assert (tmp_path / "got").read_bytes() == FILE


def test_who_has_another_certificate_never_sees_the_token(start: Start, tmp_path: Path) -> None:
    seen = []
    with hostile(lambda peer: seen.append(peer.recv(1)), *new_identity()) as port:
        code, errors = start(fetch(port, tmp_path / "got")).end()
    assert code == 1 and "is somebody else" in errors
    assert not any(seen) and not (tmp_path / "got").exists()


@pytest.mark.parametrize("is_link", [False, True])
def test_what_lies_there_is_not_written_to(is_link: bool, start: Start, tmp_path: Path) -> None:
    other, path = tmp_path / "other", tmp_path / "got"
    other.write_text("mine")
    path.symlink_to(other) if is_link else path.write_text("mine")
    server = start(serve(tmp_path / "served"))
    code, errors = start(fetch(server.port(), path)).end()
    assert code == 1 and "FileExistsError" in errors
    assert other.read_text() == path.read_text() == "mine"


def test_where_nobody_listens_it_ends(start: Start, tmp_path: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        code, errors = start(fetch(bound.getsockname()[1], tmp_path / "got")).end()
    assert code == 1 and "refused" in errors
