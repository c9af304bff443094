"""The controller's side of the protocol: who has the token is answered, within bounds and in time."""

from __future__ import annotations

import asyncio
import hmac
import resource
import socket
import traceback
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from benchmarks.search.controller.proposals import Facts
from benchmarks.search.controller.refusal import WRONG, RefuseError
from benchmarks.search.controller.search import Search
from benchmarks.search.controller.turns import Turns
from benchmarks.search.protocol import (
    LARGEST_BODY,
    Propose,
    Proposed,
    ProtocolError,
    Refusal,
    Reply,
    Request,
    encode,
    request_of,
)
from utils.errors import FlagPerfError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Check = Callable[[Proposed, Proposed | None], tuple[Proposed, Facts]]
WITHOUT_TOKEN, TOO_LARGE, BROKEN = 401, 413, 500
IDLE_S = 600  # a worker's connection is idle while it trains
WHOLE_REQUEST_S = 20.0  # from a connection's beginning, or a request's, to its end ...
SLOWEST = 2**20  # ... unless so many bytes have come meanwhile
WEIGHTS = "/weights/"  # paths of another application, for who has the token
CONNECTIONS_OF_WORKER, OTHER_FILES = 3, 64
SPARE_CONNECTIONS = 256  # of workers that start anew, and of strangers


class App:
    """The ASGI application: one path, one method; `weights` answers what is asked of paths below WEIGHTS."""

    def __init__(
        self, search: Search, turns: Turns, token: str, check: Check, weights: Application | None = None
    ) -> None:
        self._search, self._turns, self._check, self._weights = search, turns, check, weights
        self._checks = ThreadPoolExecutor(1)  # not more: they compute, and hold up who answers
        self._authorization = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            self._refuse_stranger(scope)
            if self._weights and scope["path"].startswith(WEIGHTS):
                await self._weights(scope, receive, send)
                return
            _refuse_other_path(scope)
            reply: Reply | Refusal = await self._answer(request_of(await _body(scope, receive)))
            status = 200
        except RefuseError as error:
            status, reply = error.status, Refusal(error.reason)
        except ProtocolError as error:
            status, reply = WRONG, Refusal(error.message)
        except Exception:
            traceback.print_exc()
            status, reply = BROKEN, Refusal("the controller's log says why")
        await _send(send, status, encode(reply))

    async def _answer(self, request: Request) -> Reply:
        facts = None
        if isinstance(request, Propose):
            parent = None
            if request.proposed.parent is not None:
                parent = await self._turns.take(partial(self._search.proposals.parent_of, request.proposed))
            proposed, facts = await asyncio.get_running_loop().run_in_executor(
                self._checks, self._check, request.proposed, parent
            )
            request = Propose(request.worker, request.session, request.start, proposed)
        return await self._turns.take(partial(self._search.answer, request, facts))

    def _refuse_stranger(self, scope: Scope) -> None:
        """Before anything of the body is read; compared in the same time whatever stands there."""
        given = dict(scope["headers"]).get(b"authorization", b"")
        if not hmac.compare_digest(given, self._authorization):
            raise RefuseError(WITHOUT_TOKEN, "the token is missing, or is not this run's")


def _refuse_other_path(scope: Scope) -> None:
    if (scope["method"], scope["path"]) != ("POST", "/"):
        raise RefuseError(WRONG, "requests are `POST /`")


async def _body(scope: Scope, receive: Receive) -> bytes:
    length = dict(scope["headers"]).get(b"content-length", b"0")
    parts, size, more = [], int(length), True
    while more and size <= LARGEST_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefuseError(WRONG, "the request was broken off")
        parts.append(message.get("body", b""))
        size, more = sum(map(len, parts)), message.get("more_body", False)
    if size > LARGEST_BODY:
        raise RefuseError(TOO_LARGE, f"a request has {LARGEST_BODY} bytes at most")
    return b"".join(parts)


async def _send(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status in (WITHOUT_TOKEN, TOO_LARGE):
        headers.append((b"connection", b"close"))  # what more it sends is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class PromptProtocol(H11Protocol):
    """A connection that is closed when no whole request comes over it in time: nobody holds others' places."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch."""
        super().connection_made(transport)
        self._answered = self._received = 0
        self._watch(-1, 0)

    def data_received(self, data: bytes) -> None:
        """Count it."""
        self._received += len(data)
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Count it."""
        self._answered += 1
        super().on_response_complete()

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


def listen(host: str, port: int) -> socket.socket:
    """A socket at the controller's address; FlagPerfError where there can be none."""
    where = f"{host}:{port}"
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(place[:2], family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "MASTER_ADDR and MASTER_PORT are to be this node's, and free"
        raise FlagPerfError(f"cannot be listened on: {reason}", where=where, remedy=remedy) from error


def allow_open_files(workers: int) -> int:
    """Raise this process's limit of open files to what so many workers need; how many connections are taken.

    Raises:
        FlagPerfError: the hard limit is lower.
    """
    connections = workers * CONNECTIONS_OF_WORKER + SPARE_CONNECTIONS
    needed = connections + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        message = f"{workers} workers need {needed} open files, and no more than {hard} are allowed"
        remedy = (
            "raise the hard limit of open files where the controller runs (ulimit -Hn, or --ulimit nofile)"
        )
        raise FlagPerfError(message, where="controller", remedy=remedy)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return connections


class _Server(uvicorn.Server):
    """Signals are the controller's."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield


def make_server(app: App, connections: int) -> uvicorn.Server:
    """The server; requests over more connections are answered with 503."""
    config = uvicorn.Config(
        app,
        http=PromptProtocol,
        ws="none",
        lifespan="off",
        log_level="critical",  # strangers' mistakes are not for the log
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=connections,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=1,
    )
    return _Server(config)
