"""What tests ask of a connection."""

from __future__ import annotations

import socket


def is_open(connection: socket.socket) -> bool:
    """Whether the other side has not ended it; nothing is expected from it."""
    connection.settimeout(0.01)
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False
