"""Connections to the controller: nobody holds others' places, and who has shown no token has few, and not for long."""

from __future__ import annotations

import asyncio
import hmac
import resource
from collections.abc import Iterable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from utils.errors import FlagPerfError
from utils.roles import worker_token

FIRST_HEADER_S = 5.0  # until a connection has shown a worker's token
WHOLE_REQUEST_S = 20.0  # from a connection's beginning, or a request's, to its end ...
SLOWEST = 2**20  # ... unless so many bytes have come meanwhile
LONGEST_HEAD = 4096  # bytes; of more, as of a body in chunks, a single read could take a second
CONNECTIONS_OF_WORKER, STRANGERS = 5, 256
BACKLOG = 256  # connections that are taken at once
OTHER_FILES = 64 + 3 * BACKLOG  # those that are closed, until they are gone, too


class Connections:
    """Whose each open connection is: a worker's, or a stranger's (None). Of too many the oldest is closed."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._of: dict[int | None, dict[PromptProtocol, None]] = {}

    def worker_of(self, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
        """Whose token it is; compared in the same time whatever stands there. None: no worker's of this run."""
        given = dict(headers).get(b"authorization", b"")
        number = given.removeprefix(b"Bearer ").partition(b".")[0]
        worker = int(number) if number.isdigit() and len(number) <= 10 else 0
        wanted = f"Bearer {worker_token(self._token, worker)}".encode()
        return worker if hmac.compare_digest(given, wanted) else None

    def take(self, connection: PromptProtocol, owner: int | None) -> None:
        """It is this one's from now on."""
        self.drop(connection)
        connection.owner = owner
        own = self._of.setdefault(owner, {})
        own[connection] = None
        if len(own) > (STRANGERS if owner is None else CONNECTIONS_OF_WORKER):
            oldest = next(iter(own))
            del own[oldest]
            oldest.transport.abort()

    def drop(self, connection: PromptProtocol) -> None:
        """It has ended, or becomes another's."""
        self._of.get(connection.owner, {}).pop(connection, None)


class PromptProtocol(H11Protocol):
    """A connection that is closed when no whole request comes over it in time; its application has `connections`."""

    owner: int | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch."""
        super().connection_made(transport)
        self._answered = self._received = 0
        self._all: Connections = self.app.connections
        self._all.take(self, None)
        self.loop.call_later(FIRST_HEADER_S, self._close_stranger)
        self._watch(-1, 0)

    def connection_lost(self, exc: Exception | None) -> None:
        """Its place is free."""
        self._all.drop(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count it; see whose it is. What no worker's client sends is not looked at, and ends the connection."""
        self._received += len(data)
        super().data_received(data[:LONGEST_HEAD])
        rest = data[LONGEST_HEAD:]
        if rest and self.conn.their_state is h11.SEND_BODY and not self._is_in_chunks():
            super().data_received(rest)
            rest = b""
        if rest or self._is_in_chunks() or self._is_before_the_answer():
            self.transport.abort()
        if self.owner is None and self.scope is not None and not self.transport.is_closing():
            worker = self._all.worker_of(self.scope["headers"])
            if worker is not None:
                self._all.take(self, worker)

    def send_400_response(self, msg: str) -> None:
        """Say nothing to what is no HTTP: an answer may have begun."""
        self.transport.abort()

    def on_response_complete(self) -> None:
        """Count it."""
        self._answered += 1
        super().on_response_complete()

    def _is_in_chunks(self) -> bool:
        return self.scope is not None and b"transfer-encoding" in dict(self.scope["headers"])

    def _is_before_the_answer(self) -> bool:
        """A further request has begun to come."""
        return self.conn.their_state is h11.DONE and bool(self.conn.trailing_data[0])

    def _close_stranger(self) -> None:
        if self.owner is None:
            self.transport.abort()

    def _watch(self, answered: int, received: int) -> None:
        is_idle = self.timeout_keep_alive_task is not None
        is_at_work = self.cycle is not None and not (self.cycle.more_body or self.cycle.response_complete)
        if self.transport.is_closing():
            return
        is_slow = answered == self._answered and self._received - received < SLOWEST
        if is_slow and not is_idle and not is_at_work:
            self.transport.close()
            return
        self.loop.call_later(WHOLE_REQUEST_S, self._watch, self._answered, self._received)


def allow_open_files(workers: int) -> None:
    """Raise this process's limit of open files to what so many workers need.

    Raises:
        FlagPerfError: the hard limit is lower.
    """
    needed = workers * CONNECTIONS_OF_WORKER + STRANGERS + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        message = f"{workers} workers need {needed} open files, and no more than {hard} are allowed"
        remedy = (
            "raise the hard limit of open files where the controller runs (ulimit -Hn, or --ulimit nofile)"
        )
        raise FlagPerfError(message, where="controller", remedy=remedy)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
