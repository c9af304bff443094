"""How long a byte takes from one node to another and back, and how much a second one TCP stream carries.

    python3 - <this file, and a last line that calls serve(TOKEN) or ask(HOST, PORT, TOKEN)>

`serve` prints the port that it listens on, and serves whoever knows the token, once; `ask` prints what it measured as
a line of JSON. Both end by themselves. Standard library, Python 3.8 or later; writes no file.
"""

from __future__ import annotations

import json
import socket
import statistics
import time

PINGS = 100
SENDING_S = 1.0
LIMIT_S = 15.0  # for all of it
STRANGER_S = 1.0  # so long somebody who connects may take to say the token
CHUNK = 2**18


def serve(token: str, limit_s: float = LIMIT_S) -> None:
    """Serve one who knows the token: send back PINGS bytes, then take what comes, and tell how much it was."""
    end = time.monotonic() + limit_s
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        print(listener.getsockname()[1], flush=True)
        while True:
            listener.settimeout(max(0.01, end - time.monotonic()))
            connection, _ = listener.accept()
            with connection:
                if _knows(connection, token.encode()):
                    connection.settimeout(limit_s)
                    _answer(connection)
                    return


def ask(host: str, port: int, token: str, limit_s: float = LIMIT_S) -> None:
    """Print `latency_s`, the median of a byte's way there and back, and `bytes_per_s` of one stream."""
    with socket.create_connection((host, port), limit_s) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(token.encode())
        latencies = [_ping(connection) for _ in range(PINGS)]
        begin, chunk = time.monotonic(), bytes(CHUNK)
        while time.monotonic() < begin + SENDING_S:
            connection.sendall(chunk)
        connection.shutdown(socket.SHUT_WR)
        count = int.from_bytes(_received(connection, 8), "big")
        seconds = time.monotonic() - begin
    print(json.dumps({"latency_s": statistics.median(latencies), "bytes_per_s": count / seconds}))


def _knows(connection: socket.socket, token: bytes) -> bool:
    try:
        return _received(connection, len(token), time.monotonic() + STRANGER_S) == token
    except OSError:
        return False


def _answer(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(PINGS):
        connection.sendall(_received(connection, 1))
    count = 0
    while True:
        received = len(connection.recv(CHUNK))
        if not received:
            break
        count += received
    connection.sendall(count.to_bytes(8, "big"))


def _ping(connection: socket.socket) -> float:
    begin = time.monotonic()
    connection.sendall(b"p")
    _received(connection, 1)
    return time.monotonic() - begin


def _received(connection: socket.socket, count: int, end: float | None = None) -> bytes:
    """So many bytes, all of them before `end`: who sends one now and then holds nobody up."""
    content = b""
    while len(content) < count:
        if end is not None:
            connection.settimeout(max(0.001, end - time.monotonic()))
        piece = connection.recv(count - len(content))
        if not piece:
            raise OSError("the peer has closed the connection")
        content += piece
    return content
