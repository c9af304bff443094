"""Which interface leads to a peer: by the kernel's route table, as it prints it."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from pathlib import Path

import pytest

from run_benchmarks.stages.network import interface_to, route_interface
from run_benchmarks.transports.local import LocalTransport
from utils.errors import FlagPerfError

HEADING = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
# A node with a management network, an InfiniBand network and a route to one host of its own; read on x86-64.
TABLE = HEADING + (
    "eth0    00000000  0100A8C0  0003  0 0 100 00000000  0 0 0\n"
    "eth0    0000A8C0  00000000  0001  0 0 100 00FFFFFF  0 0 0\n"
    "ib0     0000010A  00000000  0001  0 0 0   0000FFFF  0 0 0\n"
    "ib1     0502010A  00000000  0005  0 0 0   FFFFFFFF  0 0 0\n"
    "docker0 000011AC  00000000  0001  0 0 0   0000FFFF  0 0 0\n"
)


@pytest.mark.parametrize(
    ("peer", "interface"),
    [
        ("192.168.0.7", "eth0"),
        ("10.1.3.9", "ib0"),
        ("10.1.2.5", "ib1"),  # the more specific of two
        ("10.1.2.6", "ib0"),
        ("203.0.113.4", "eth0"),  # the default route
    ],
)
def test_the_most_specific_route_wins(peer: str, interface: str) -> None:
    assert route_interface(TABLE, ipaddress.IPv4Address(peer)) == interface


def test_of_equal_routes_the_first_wins() -> None:
    two = HEADING + (
        "wlan0 00000000 0100A8C0 0003 0 0 100 00000000 0 0 0\n"
        "eth0  00000000 0100A8C0 0003 0 0 600 00000000 0 0 0\n"
    )
    assert route_interface(two, ipaddress.IPv4Address("203.0.113.4")) == "wlan0"


@pytest.mark.parametrize(
    "table",
    [
        *("", HEADING, HEADING + "eth0 0000A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"),
        *(HEADING + "\neth0\n", HEADING + "eth0 no number 0 0 0 0 0 0 0 0\n"),
    ],
)
def test_without_a_route_there_is_no_interface(table: str) -> None:
    assert route_interface(table, ipaddress.IPv4Address("10.0.0.1")) == ""


def test_this_machines_own_table_can_be_read() -> None:
    """Every destination in it is reached by an interface that exists."""
    lines = Path("/proc/net/route").read_text().splitlines()[1:]
    if not lines:
        pytest.skip("this machine has no routes")
    for line in lines:
        address = int.from_bytes(bytes.fromhex(line.split()[1]), "little") or 1
        interface = asyncio.run(interface_to(LocalTransport("node1"), str(ipaddress.IPv4Address(address))))
        assert (Path("/sys/class/net") / interface).exists()


def test_a_peer_that_means_the_host_itself_is_refused() -> None:
    with pytest.raises(FlagPerfError) as caught:
        asyncio.run(interface_to(LocalTransport("node1"), "localhost"))
    assert caught.value.where == "node1"
    assert "means this host itself" in caught.value.message
    assert "/etc/hosts" in caught.value.remedy


def test_an_unknown_peer_is_an_error_with_a_remedy() -> None:
    with pytest.raises(FlagPerfError) as caught:
        asyncio.run(interface_to(LocalTransport("node1"), "no-such-host.invalid"))
    assert "no-such-host.invalid has no IPv4 address here" in caught.value.message
    assert "make no-such-host.invalid known there" in caught.value.remedy


@pytest.mark.parametrize("said", ["", "STREAM"])
def test_no_address_is_made_of_odd_words(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "getent").write_text(f"#!/bin/sh\necho {said}\n")  # FAKE: of a host that is broken, or lies
    (tmp_path / "getent").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(FlagPerfError, match="has no IPv4 address here"):
        asyncio.run(interface_to(LocalTransport("node1"), "node2"))
