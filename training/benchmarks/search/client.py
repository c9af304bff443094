"""A worker's line to the controller: one request after the other, sent again until it is answered."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, IncompleteRead
from threading import Event

from msgspec.structs import replace

from benchmarks.search.protocol import (
    LARGEST_REPLY,
    TOKEN_FORM,
    TOO_OFTEN,
    EpochDone,
    ProtocolError,
    Reply,
    Request,
    encode,
    refusal_of,
    reply_of,
)
from utils.case_form import ROLES_TOKEN
from utils.errors import FlagPerfError, raised
from utils.roles import ADDRESS, SESSION, START, WORKER

GIVE_UP_S = 600.0  # without an answer: a controller that is started again is back long before
ANSWER_S = 30.0  # for one answer
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0


class RequestRefusedError(FlagPerfError):
    """The controller will not take this request, and would not take it again; `status` as in the protocol."""

    def __init__(self, status: int, message: str, where: str) -> None:
        super().__init__(f"the controller refused it ({status}): {message}", where=where)
        self.status = status


class ControllerLostError(FlagPerfError):
    """The controller has not answered for too long, or nobody waits for its answer any more."""


@dataclass(frozen=True)
class Place:
    """Where the controller is and what it knows this worker by; `session`, `start`: as in the protocol's Message."""

    host: str
    port: int
    token: str = field(repr=False)
    worker: int
    session: str
    start: int
    node_rank: int


def read_place(environment: Mapping[str, str] = os.environ) -> Place:
    """The place that the launcher (utils.roles) has given to this worker.

    Raises:
        FlagPerfError: a variable is missing or holds something else.
    """
    host, _, port = environment.get(ADDRESS, "").rpartition(":")
    token, session = environment.get(ROLES_TOKEN, ""), environment.get(SESSION, "")
    names = (WORKER, START, "NODE_RANK")
    try:
        worker, start, node_rank = (int(environment.get(name, "")) for name in names)
        place = Place(host, int(port), token, worker, session, start, node_rank)
    except ValueError as error:
        message = f"{error} in one of {', '.join((ADDRESS, *names))}"
        raise FlagPerfError(message, where="environment", remedy="start workers by utils.roles") from None
    if not TOKEN_FORM.fullmatch(token):
        raise FlagPerfError("is missing, or is no token", where=f"environment: {ROLES_TOKEN}")
    return place


class Client:
    """One connection to the controller, for one thread; it is made anew when it breaks."""

    def __init__(self, place: Place, give_up_s: float = GIVE_UP_S) -> None:
        self._where = f"controller {place.host}:{place.port}"
        self._connection = HTTPConnection(place.host, place.port, timeout=ANSWER_S)
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {place.token}"}
        self._give_up_s = give_up_s
        self._closed = Event()

    def send(self, request: Request) -> Reply:
        """The answer; the request is sent again, with longer and longer pauses, while none comes.

        Raises:
            RequestRefusedError: as the protocol says.
            ControllerLostError: none came for `give_up_s`, or `close` was called.
            ProtocolError: what answers is no controller.
        """
        began = time.monotonic()
        for pause_s in _pauses():
            delayed_s = time.monotonic() - began
            try:
                status, body = self._post(encode(_sent_late(request, delayed_s)))
            except (OSError, HTTPException) as error:
                self._connection.close()
                problem = raised(error)
            else:
                if status == 200:
                    return reply_of(body)
                reason = _reason(body)
                if reason is not None and status != TOO_OFTEN:
                    raise RequestRefusedError(status, reason, self._where)
                problem = reason or f"status {status}"
            if delayed_s > self._give_up_s:
                raise ControllerLostError(f"no answer for {delayed_s:.0f} s: {problem}", where=self._where)
            if self._closed.wait(pause_s):
                break
        raise ControllerLostError("this worker is ending", where=self._where)

    def close(self) -> None:
        """Send nothing again from now on; may be called by another thread."""
        self._closed.set()

    def _post(self, body: bytes) -> tuple[int, bytes]:
        self._connection.request("POST", "/", body, self._headers)
        response = self._connection.getresponse()
        return response.status, whole_answer(response, LARGEST_REPLY)


def whole_answer(response: HTTPResponse, most: int) -> bytes:
    """An answer's body.

    Raises:
        ProtocolError: it has more than `most` bytes.
        IncompleteRead: the controller was killed in the middle of it, of which `read` with a bound says nothing.
    """
    answer = response.read(most + 1)
    if len(answer) > most:
        raise ProtocolError(f"an answer of more than {most} bytes")
    if response.length:
        raise IncompleteRead(answer, response.length)
    return answer


def _pauses() -> Iterator[float]:
    """No pause before the second try: a connection that was idle may have been closed. Then longer ones, in seconds."""
    yield 0.0
    pause_s = FIRST_PAUSE_S
    while True:
        yield pause_s * random.uniform(0.5, 1.0)  # hundreds of workers come back: not all at once
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _sent_late(request: Request, delayed_s: float) -> Request:
    return replace(request, delayed_s=delayed_s) if isinstance(request, EpochDone) else request


def _reason(body: bytes) -> str | None:
    """Why a request was refused; None where that is no controller's answer, but of a server that is just ending."""
    try:
        return refusal_of(body).error
    except ProtocolError:
        return None
