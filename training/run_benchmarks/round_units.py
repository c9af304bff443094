"""The units of a round, started on its nodes: the monitor that samples, and the task that trains."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from run_benchmarks.hosts.base import Host
from run_benchmarks.names import Node, unit_name
from run_benchmarks.round_state import RoundState
from run_benchmarks.session import Session
from run_benchmarks.stages.fan_out import raise_first
from run_benchmarks.stages.granted_devices import granted_devices
from run_benchmarks.stages.launch import Launch
from run_benchmarks.stages.network import interface_to, peer_of
from run_benchmarks.transports.base import Transport
from utils.records import Stage


class RoundUnits:
    """Starts what runs on the nodes of `state`, whose hosts are `hosts` by node rank."""

    def __init__(self, session: Session, state: RoundState, hosts: Sequence[Host]) -> None:
        self._session, self._state, self._hosts = session, state, hosts
        self._addresses = tuple(host.address for host in hosts)

    async def interface(self, node: Node) -> str:
        """The network interface by which a node reaches its peers; empty where it has none."""
        if len(self._hosts) == 1:
            return ""
        return await interface_to(self._transport(node), peer_of(self._addresses, node.rank))

    async def start_monitor(self, node: Node) -> None:
        """Let the node be sampled; that it could not be is noted, and fails no round."""
        unit = self._launch.monitor(node)
        (error,) = await asyncio.gather(
            self._session.runtime.start(self._transport(node), unit), return_exceptions=True
        )
        self._state.note_monitor(node.host, error)

    async def start_task(self, node: Node, interface: str) -> None:
        """Let the node's ranks begin."""
        transport = self._transport(node)
        granted = await granted_devices(self._session.plan, node.case, transport)
        unit = self._launch.task(node, interface, granted)
        self._state.tree = unit.workdir
        await self._session.runtime.start(transport, unit)
        self._session.journal.write(
            "started",
            case=self._state.case.settings.name,
            round=self._state.number,
            host=node.host,
            **{role: unit_name(self._session.run, node, role) for role in ("task", "monitor")},
        )
        self._session.display.stage(node, Stage.TRAIN.value)

    async def start_both(self, node: Node, interface: str) -> None:
        """Both at once and to their end, whatever becomes of one: a unit that started after the clean-up would stay."""
        starts = [self.start_task(node, interface), self.start_monitor(node)]
        raise_first(await asyncio.gather(*starts, return_exceptions=True))

    @property
    def _launch(self) -> Launch:
        session, state = self._session, self._state
        assert state.framework is not None  # noqa: S101 - for mypy
        addresses = self._addresses
        return Launch(
            session.plan,
            session.run,
            session.paths,
            session.runtime,
            state.framework,
            state.tag,
            addresses,
            session.token,
        )

    def _transport(self, node: Node) -> Transport:
        return self._hosts[node.rank].transport
