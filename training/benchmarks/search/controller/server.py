"""The controller's side of the protocol: who has the token is answered, within bounds and in time."""

from __future__ import annotations

import asyncio
import socket
import traceback
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn

from benchmarks.search.controller.connections import BACKLOG, LONGEST_HEAD, Connections, PromptProtocol
from benchmarks.search.controller.proposals import Facts
from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.controller.search import Search
from benchmarks.search.controller.spoilt import refuse_spoilt
from benchmarks.search.controller.turns import Turns
from benchmarks.search.controller.weights import PARAMETERS, trial_of
from benchmarks.search.protocol import (
    LARGEST_BODY,
    TOO_LARGE,
    WITHOUT_TOKEN,
    WRONG,
    Propose,
    Proposed,
    ProtocolError,
    Refusal,
    Reply,
    Request,
    encode,
    request_of,
)
from benchmarks.search.weight_exchange import PATH
from utils.errors import FlagPerfError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Check = Callable[[Proposed, Proposed | None], tuple[Proposed, Facts]]
BROKEN = 500
IDLE_S = 600  # a worker's connection is idle while it trains


class App:
    """The ASGI application: one path, one method; `weights` answers what is asked of paths below PATH.

    token: the run's, of which each worker's is made.
    """

    def __init__(
        self, search: Search, turns: Turns, token: str, check: Check, weights: Application | None = None
    ) -> None:
        self._search, self._turns, self._check, self._weights = search, turns, check, weights
        self._checks = ThreadPoolExecutor(1)  # not more: they compute, and hold up who answers
        self.connections = Connections(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            worker = self.connections.worker_of(scope["headers"])
            if worker is None:  # before anything of the body is read
                raise RefuseError(WITHOUT_TOKEN, "the token is missing, or is not this run's")
            if self._weights and scope["path"].startswith(PATH):
                await self._weights(await self._with_bound(scope, worker), receive, send)
                return
            _refuse_other_path(scope)
            request = request_of(await _body(scope, receive))
            if request.worker != worker:
                raise RefuseError(WITHOUT_TOKEN, f"the token is not worker {request.worker}'s")
            reply: Reply | Refusal = await self._answer(request)
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
        facts, proposals = None, self._search.proposals
        if isinstance(request, Propose) and await self._turns.take(
            partial(proposals.is_asked, request.worker)
        ):
            try:
                proposed, facts = await self._checked(request.proposed)
            except RefuseError:  # nor is another looked at, until one is asked for
                await self._turns.take(partial(proposals.forget, request.worker))
                raise
            request = Propose(request.worker, request.session, request.start, proposed)
        return await self._turns.take(partial(self._search.answer, request, facts))

    async def _checked(self, proposed: Proposed) -> tuple[Proposed, Facts]:
        parent = None
        if proposed.parent is not None:
            parent = await self._turns.take(partial(self._search.proposals.parent_of, proposed))
        return await asyncio.get_running_loop().run_in_executor(self._checks, self._check, proposed, parent)

    async def _with_bound(self, scope: Scope, worker: int) -> Scope:
        """Weights are a worker's to store of what it trains alone, and as many as that network has.

        RefuseError also for those by which children fail.
        """
        trial, search = trial_of(scope["path"]), self._search
        if scope["method"] == "GET" and trial:
            await self._turns.take(
                partial(refuse_spoilt, search.ledger.account, trial, search.settings.workers)
            )
        if scope["method"] != "PUT" or trial is None:
            return scope
        parameters = await self._turns.take(partial(search.trials.parameters_of, worker, trial))
        return {**scope, PARAMETERS: parameters}


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


class _Server(uvicorn.Server):
    """Signals are the controller's."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield


def make_server(app: App) -> uvicorn.Server:
    """The server."""
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
        limit_concurrency=None,  # else strangers have the workers' places
        backlog=BACKLOG,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=1,
    )
    return _Server(config)
