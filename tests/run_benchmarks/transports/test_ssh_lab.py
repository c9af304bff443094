"""What a network and a host can do to the ssh transport: cut, freeze, power off. Needs the lab."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.transports import open_transport
from run_benchmarks.transports.base import Transport, TransportError
from tests.lab import Lab
from tests.run_benchmarks.transports.conftest import Host


@pytest.fixture
def hosts(lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Two hosts."""
    made = lab(hosts=2)
    monkeypatch.setenv("HOME", made.env["HOME"])
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return made


def host(name: str) -> Host:
    return Host(name, ClusterSettings(hosts=("h1", "h2"), ssh_connect_timeout_s=3.0))


async def lose(transport: Transport, how: Callable[[], None]) -> None:
    """A command is under way when `how` happens to the host; another is cancelled after it."""
    assert (await transport.run(["hostname"])).stdout == f"{transport.host}\n"
    running = asyncio.ensure_future(transport.run(["sleep", "600"]))
    cancelled = asyncio.ensure_future(transport.run(["sleep", "600"]))
    await asyncio.sleep(0.5)
    how()
    cancelled.cancel()
    with pytest.raises(TransportError, match="contact was lost") as caught:
        await running
    assert caught.value.where == transport.host
    with pytest.raises(asyncio.CancelledError):
        await cancelled


def test_cut_and_frozen_hosts_are_noticed_and_found_again(hosts: Lab) -> None:
    """h1 is cut off; h2 is frozen: its kernel still accepts connections, and nobody answers on them."""

    async def cut(transport: Transport) -> None:
        await lose(transport, lambda: hosts.cut(1))
        with pytest.raises(TransportError, match=r"not even to TCP|no route"):
            await transport.run(["true"])
        hosts.heal(1)
        assert (await transport.run(["hostname"])).stdout == "h1\n"

    async def freeze(transport: Transport) -> None:
        await lose(transport, lambda: hosts.freeze(2))
        with pytest.raises(TransportError, match=r"10\.\S+ port 22 takes a TCP connection"):
            await transport.run(["true"])
        hosts.thaw(2)
        assert (await transport.run(["hostname"])).stdout == "h2\n"

    async def both(first: Transport) -> None:
        second = open_transport("h2", host("h2").cluster)
        await asyncio.gather(cut(first), freeze(second))
        await second.close()

    host("h1").use(both)


def test_a_host_without_power_is_noticed_and_found_again(hosts: Lab) -> None:
    """And nobody minds on the other one."""

    async def scenario(transport: Transport) -> None:
        other = open_transport("h2", host("h2").cluster)
        beside = asyncio.ensure_future(other.run(["sh", "-c", "sleep 1; hostname"]))
        await lose(transport, lambda: hosts.kill(1))
        with pytest.raises(TransportError, match="refuses connections"):
            await transport.run(["true"])
        assert (await beside).stdout == "h2\n"
        await asyncio.get_running_loop().run_in_executor(None, hosts.start, 1)
        assert (await transport.run(["hostname"])).stdout == "h1\n"
        await other.close()

    host("h1").use(scenario)
