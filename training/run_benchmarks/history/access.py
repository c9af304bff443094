"""Who may see the pages: requests of this machine, or with the token; never those that another site's page makes.

- A request's `Host` is this machine's own (`own_names`).
- Where a token is asked for, the address that has it is opened once; a cookie stands for it from then on.
- Nothing can be changed here, no other site may read an answer (there is no CORS header) or frame it.
"""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING, Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from run_benchmarks.own_names import is_own_name

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"  # noqa: S105 - the name of a parameter
HEADERS: Final = {
    "content-security-policy": "frame-ancestors 'none'",  # the pages bring the rest of it
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Lets through to `app` what may see it.

    Args:
        token: what has to be shown once; None where everybody on this machine may see the pages.
        port: of the server, for cookies do not tell one port of a machine from another.
    """

    def __init__(self, app: ASGIApp, token: str | None, port: int) -> None:
        self._app, self._token = app, token
        self._session = secrets.token_urlsafe(32)
        self._cookie = f"flagperf-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            answer = self._refusal(Request(scope)) or self._app
            await answer(scope, receive, _with_headers(send))

    def _refusal(self, request: Request) -> Response | None:
        if not is_own_name(request.headers.get("host", "")):
            return PlainTextResponse("This name does not belong to the machine that serves the page.", 421)
        if self._token is None or _same(request.cookies.get(self._cookie, ""), self._session):
            return None
        if _same(request.query_params.get(TOKEN, ""), self._token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self._cookie, self._session, httponly=True, samesite="lax")
            return answer
        return PlainTextResponse("Open the address that run.py serve has printed: it has the token.", 401)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), wanted.encode())


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(HEADERS)
        await send(message)

    return send_with_headers
