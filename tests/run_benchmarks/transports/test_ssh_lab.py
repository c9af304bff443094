"""What a network and a host can do to the ssh transport: cut, freeze, power off. Needs the lab."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from run_benchmarks.plan.records import ClusterSettings
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


def host(**settings: Any) -> Host:
    return Host("h1", ClusterSettings(hosts=("h1",), ssh_connect_timeout_s=3.0, **settings))


def lose(hosts: Lab, how: Callable[[int], None]) -> Callable[[Transport], Any]:
    """A scenario: a command is under way when `how` happens to the host."""

    async def scenario(transport: Transport) -> None:
        assert (await transport.run(["hostname"])).stdout == "h1\n"
        running = asyncio.ensure_future(transport.run(["sleep", "600"]))
        await asyncio.sleep(0.5)
        how(1)
        with pytest.raises(TransportError, match="contact was lost") as caught:
            await running
        assert caught.value.where == "h1"

    return scenario


def test_a_cut_host_is_noticed_and_found_again(hosts: Lab) -> None:
    async def scenario(transport: Transport) -> None:
        await lose(hosts, hosts.cut)(transport)
        with pytest.raises(TransportError, match=r"no answer|no route"):
            await transport.run(["true"])
        hosts.heal(1)
        assert (await transport.run(["hostname"])).stdout == "h1\n"

    host().use(scenario)


def test_a_frozen_host_is_noticed_and_found_again(hosts: Lab) -> None:
    """Its kernel still accepts connections, and nobody answers on them."""

    async def scenario(transport: Transport) -> None:
        await lose(hosts, hosts.freeze)(transport)
        with pytest.raises(TransportError, match=r"no answer from 10\.\S+ port 22 within 3 s"):
            await transport.run(["true"])
        hosts.thaw(1)
        assert (await transport.run(["hostname"])).stdout == "h1\n"

    host().use(scenario)


def test_a_host_without_power_is_noticed_and_found_again(hosts: Lab) -> None:
    async def scenario(transport: Transport) -> None:
        await lose(hosts, hosts.kill)(transport)
        with pytest.raises(TransportError, match="refuses connections"):
            await transport.run(["true"])
        await asyncio.get_running_loop().run_in_executor(None, hosts.start, 1)
        assert (await transport.run(["hostname"])).stdout == "h1\n"

    host().use(scenario)


def test_cancelling_a_command_on_a_cut_host_does_not_hang(hosts: Lab) -> None:
    async def scenario(transport: Transport) -> None:
        await transport.run(["true"])
        running = asyncio.ensure_future(transport.run(["sleep", "600"]))
        await asyncio.sleep(0.3)
        hosts.cut(1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    host().use(scenario)


def test_one_hosts_trouble_is_not_anothers(hosts: Lab) -> None:
    async def scenario(transport: Transport) -> None:
        hosts.cut(2)
        with pytest.raises(TransportError):
            await transport.run(["true"])
        hosts.heal(2)

    Host("h2", ClusterSettings(hosts=("h2",), ssh_connect_timeout_s=1.0)).use(scenario)
    assert host().use(lambda t: t.run(["hostname"])).stdout == "h1\n"
