"""Which network interface of a node leads to its peers.

gloo binds to the address that the host's own name resolves to; on many distributions that is 127.0.1.1,
and ranks on other hosts wait for it in vain. So the interface is named explicitly.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Sequence

from run_benchmarks.transports.base import WHOLE_BYTES, CommandError, Transport
from utils.errors import FlagPerfError

TIMEOUT_S = 30.0
# A line of /proc/net/route: the interface, its network and, five columns further, the network's mask.
ROUTE = re.compile(r"(\S{1,15})\s+([0-9A-F]{8})(?:\s+\S+){5}\s+([0-9A-F]{8})\s")
OR_ADDRESSES = "; where cluster_conf.py lists the hosts, addresses may stand there in place of names"


def peer_of(addresses: Sequence[str], rank: int) -> str:
    """Of several nodes' addresses the one by which node `rank` finds its way: node 0's, or for that the next."""
    return addresses[1] if rank == 0 else addresses[0]


async def interface_to(transport: Transport, peer: str) -> str:
    """The interface of the host over which `peer` is reached.

    Raises:
        FlagPerfError: the peer's name is unknown there or means the host itself.
    """
    listed, routes = await asyncio.gather(
        transport.run(["getent", "ahostsv4", peer], timeout=TIMEOUT_S),
        transport.run(["cat", "/proc/net/route"], timeout=TIMEOUT_S, held=WHOLE_BYTES),
    )
    try:
        address = ipaddress.IPv4Address(listed.stdout.split()[0] if listed.ok else "")
    except (ValueError, IndexError):
        raise FlagPerfError(
            f"{peer} has no IPv4 address here (getent ahostsv4: exit code {listed.returncode})",
            where=transport.host,
            remedy=f"make {peer} known there (DNS or /etc/hosts){OR_ADDRESSES}",
        ) from None
    if address.is_loopback:
        raise FlagPerfError(
            f"{peer} means this host itself here ({address})",
            where=transport.host,
            remedy=f"correct /etc/hosts there{OR_ADDRESSES}",
        )
    if not routes.ok:
        raise CommandError(routes)
    return route_interface(routes.whole_stdout(), address)


def route_interface(table: str, address: ipaddress.IPv4Address) -> str:
    """The interface of the most specific route to `address` in the text of /proc/net/route; empty if none."""
    best, best_length = "", -1
    for route in filter(None, map(ROUTE.match, table.splitlines())):
        network, mask = _number(route[2]), _number(route[3])
        length = mask.bit_count()
        if int(address) & mask == network & mask and length > best_length:
            best, best_length = route[1], length
    return best


def _number(hexadecimal: str) -> int:
    """The kernel prints addresses in the machine's byte order, which is little-endian wherever chips train."""
    return int.from_bytes(bytes.fromhex(hexadecimal), "little")
