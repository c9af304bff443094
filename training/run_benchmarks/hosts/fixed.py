"""The fixed list of `cluster_conf.py`: every case runs on the first hosts of its vendor."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from run_benchmarks.hosts.base import Allocation, Host
from run_benchmarks.hosts.granted import GrantedJob
from run_benchmarks.plan.records import CasePlan, ClusterSettings
from run_benchmarks.run_log import LOGGER
from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError

Opener = Callable[[str], Transport]


class FixedHosts:
    """Hosts that are always there; their transports stay open from round to round.

    Args:
        addresses: those by which peers reach them, where these are not their names.
    """

    keeps = True

    def __init__(
        self, cluster: ClusterSettings, opener: Opener, addresses: Mapping[str, str] | None = None
    ) -> None:
        by = addresses or {}
        self.standing = tuple(Host(name, by.get(name, name), opener(name)) for name in cluster.hosts)
        self._by_name = {host.name: host for host in self.standing}

    def planned(self, case: CasePlan) -> tuple[Host, ...]:
        """The hosts that the plan has given to the case."""
        return tuple(self._by_name[name] for name in case.hosts)

    @asynccontextmanager
    async def acquire(self, case: CasePlan, earlier: GrantedJob | None = None) -> AsyncIterator[Allocation]:
        """The planned hosts, at once."""
        yield Allocation(self.planned(case))

    @asynccontextmanager
    async def revisit(self, names: Sequence[str]) -> AsyncIterator[Sequence[Host]]:
        """None: nobody takes them away."""
        yield ()

    def avoid(self, host: str) -> None:
        """There are no others: spares take the places of hosts, and the run knows them."""

    async def close(self) -> None:
        """Let go of all hosts; one that does not answer is gone already."""
        for host in self.standing:
            try:
                await host.transport.close()
            except FlagPerfError as error:
                LOGGER.debug(f"{host.name}: {error}")
