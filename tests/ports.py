"""TCP ports for tests that run beside others on the machine."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that nobody listens on and that nobody else is given meanwhile."""
    with socket.socket() as bound:
        bound.bind(("", 0))
        yield bound.getsockname()[1]


# Below the ports that Linux gives to outgoing connections (32768 and up): none of them takes a port between its choice
# and its use, and nobody who probes it is connected with himself.
SERVER_PORTS = range(20000, 32768)


def free_port() -> int:
    """A port that nobody listens on just now."""
    while True:
        port = secrets.choice(SERVER_PORTS)
        with socket.socket() as bound:
            if bound.connect_ex(("127.0.0.1", port)) != 0:
                return port
