"""The server of the site: where it listens, what it asks for, and how it ends."""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import quote

from run_benchmarks.history.access import TOKEN
from run_benchmarks.history.index import Index
from utils.errors import FlagPerfError

TOKEN_VARIABLE = "FLAGPERF_SERVE_TOKEN"  # noqa: S105 - a name
SHORTEST_TOKEN, LONGEST_TOKEN = 16, 256  # characters
# None of them means anything in an address, where the token has to stand once.
_TOKEN = re.compile(rf"[A-Za-z0-9._~-]{{{SHORTEST_TOKEN},{LONGEST_TOKEN}}}")
TOKEN_FORM = f"{SHORTEST_TOKEN} to {LONGEST_TOKEN} letters, digits and . _ ~ -"
GRACE_S = 2


def bound(address: str, port: int) -> socket.socket:
    """A socket that listens there; FlagPerfError where it cannot."""
    where = f"{address}, port {port}"
    try:
        family, _, _, _, place = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(place[:2], family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        remedy = "name another with --port or --address; --port 0 takes any that is free"
        raise FlagPerfError(f"cannot be listened on: {reason}", where=where, remedy=remedy) from error


def is_local(listener: socket.socket) -> bool:
    """Whether this machine alone can reach it."""
    return ip_address(listener.getsockname()[0]).is_loopback


def given_token() -> str | None:
    """The token that the user has put into the environment; None where there is none.

    Raises:
        FlagPerfError: it is none that would keep anybody out.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    if token and not _TOKEN.fullmatch(token):
        remedy = "`openssl rand -hex 32` makes one; without it one is made up and shown"
        raise FlagPerfError(f"the token is to be {TOKEN_FORM}", where=TOKEN_VARIABLE, remedy=remedy)
    return token or None


def address_of(listener: socket.socket, token: str | None) -> str:
    """The address that is opened first, with this token."""
    host, port = listener.getsockname()[:2]
    address = ip_address(host)
    name = socket.gethostname() if address.is_unspecified else f"[{host}]" if address.version == 6 else host
    return f"http://{name}:{port}/{f'?{TOKEN}={quote(token)}' if token else ''}"


def serve(listener: socket.socket, index: Index, token: str | None) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    import uvicorn

    from run_benchmarks.history.connections import BACKLOG, LONGEST_HEAD, PageProtocol
    from run_benchmarks.history.site import make_site

    site = make_site(index, token, listener.getsockname()[1])
    # its access log would show the token, which stands in the first address
    config = uvicorn.Config(
        site,
        http=PageProtocol,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        backlog=BACKLOG,
        log_level="critical",  # strangers' mistakes are not for the terminal; a fault of ours stands on the page
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=GRACE_S,
    )
    with suppress(KeyboardInterrupt):  # raised again when all is closed
        uvicorn.Server(config).run(sockets=[listener])
