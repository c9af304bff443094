"""Why a request is not taken."""

from __future__ import annotations


class RefuseError(Exception):
    """Answered with this status of the protocol, and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
