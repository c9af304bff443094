"""Which network interface of a node leads to its peers.

gloo binds to the address that the host's own name resolves to; on many distributions that is 127.0.1.1,
and ranks on other hosts wait for it in vain. So the interface is named explicitly.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence

from run_benchmarks.transports.base import WHOLE_BYTES, CommandError, Transport
from utils.errors import FlagPerfError

TIMEOUT_S = 30.0
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
    if not listed.ok or not listed.stdout.strip():
        raise FlagPerfError(
            f"{peer} has no IPv4 address here (getent ahostsv4: exit code {listed.returncode})",
            where=transport.host,
            remedy=f"make {peer} known there (DNS or /etc/hosts){OR_ADDRESSES}",
        )
    address = ipaddress.IPv4Address(listed.stdout.split()[0])
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
    for line in table.splitlines()[1:]:
        fields = line.split()
        network, mask = _number(fields[1]), _number(fields[7])
        length = mask.bit_count()
        if int(address) & mask == network & mask and length > best_length:
            best, best_length = fields[0], length
    return best


def _number(hexadecimal: str) -> int:
    """The kernel prints addresses in the machine's byte order, which is little-endian wherever chips train."""
    return int.from_bytes(bytes.fromhex(hexadecimal), "little")
