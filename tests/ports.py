"""TCP ports for tests that run beside others on the machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that nobody listens on and that nobody else is given meanwhile."""
    with socket.socket() as bound:
        bound.bind(("", 0))
        yield bound.getsockname()[1]


def free_port() -> int:
    """A port that nobody listens on just now."""
    with reserved_port() as port:
        return port
