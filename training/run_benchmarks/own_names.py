"""By which names a request may ask this machine for a page.

A stranger's name that leads here (DNS rebinding) is refused, on 127.0.0.1 too: a page of another site may ask by it.
"""

from __future__ import annotations

import re
import socket
from functools import cache
from ipaddress import ip_address

# Nothing but a name and a port: to a parser of addresses `evil@127.0.0.1` and `127.0.0.1#evil` are of this machine.
HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)]|(?P<name>[\w.-]+))(?::\d{1,5})?")


def is_own_name(host: str) -> bool:
    """Whether a request's `Host` is a plain address, `localhost` or the name of this machine."""
    match = HOST.fullmatch(host.lower())
    if not match:
        return False
    try:
        return match["name"] == "localhost" or bool(ip_address(match["v6"] or match["name"]))
    except ValueError:
        return match["name"] in _names()


@cache
def _names() -> frozenset[str]:
    return frozenset((socket.gethostname().lower(), socket.getfqdn().lower()))
