"""Every check on every host at once, and all that is wrong in one go."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from run_benchmarks.hosts.base import Host
from run_benchmarks.hosts.fixed import FixedHosts
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import Check, Status, with_status
from run_benchmarks.stages.preflight import CHECKS, castings, places_of, preflight
from run_benchmarks.transports.base import Completed, Transport, TransportError
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.plan.tree import CLUSTER_CONF, make_tree
from tests.run_benchmarks.stages.checked_host import TWO_NODES, Site, prepare
from utils import manifest


def checks_of(site: Site, *transports: Transport) -> dict[str, list[Check]]:
    """What the preflight of these hosts gives; a case runs on the first of them."""
    plan = site.plan
    hosts = [Host(transport.host, transport.host, transport) for transport in transports]
    casts = [(case, hosts[: case.settings.nnodes]) for case in plan.cases]
    return asyncio.run(preflight(plan, cast(Runtime, site.runtime), hosts, casts))


def test_preflight_does_every_check_on_every_host(site: Site) -> None:
    site.conf("MIN_FREE_DISK_GIB = 0\n")
    checks = checks_of(site, LocalTransport("node1"), LocalTransport("node2"))
    every = len(CHECKS) + 1
    assert {host: len(of_host) for host, of_host in checks.items()} == {"node1": every, "node2": every}
    assert with_status(checks, Status.WARNING, Status.ERROR) == []
    assert checks["node1"][0].name == "reachable"
    assert checks["node1"][0].detail == f"{os.uname().sysname} {os.uname().release}"


def test_preflight_tells_everything_that_is_wrong_at_once(site: Site) -> None:
    class Gone(LocalTransport):
        async def run(self, argv: Sequence[str], **options: Any) -> Completed:
            raise TransportError("Connection refused", where=self.host, remedy="start sshd on node2")

    site.conf("MIN_FREE_DISK_GIB = 1e9\n")
    (site.folder / "data").rmdir()
    prepare(site.folder / "data")
    (site.folder / "data" / manifest.MANIFEST_NAME).write_text("{")
    checks = checks_of(site, LocalTransport("node1"), Gone("node2"))
    problems = {(host, check.name) for host, check in with_status(checks, Status.ERROR)}
    assert problems == {("node1", "free disk"), ("node1", "data"), ("node2", "reachable")}
    assert all(check.remedy for _, check in with_status(checks, Status.ERROR))
    assert checks["node2"] == [
        Check("reachable", Status.ERROR, "Connection refused", "start sshd on node2"),
    ]


def test_preflight_knows_the_rank_that_a_host_has_in_each_case(site: Site) -> None:
    """MASTER_PORT is wanted on the first host of a case only."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        site.hosts("10.0.0.1", "10.0.0.2", port=port)
        site.conf("MIN_FREE_DISK_GIB = 0\n", base=TWO_NODES)
        checks = checks_of(site, LocalTransport("10.0.0.1"), LocalTransport("10.0.0.2"))
    assert ("10.0.0.1", "master port") in {
        (host, check.name) for host, check in with_status(checks, Status.ERROR)
    }
    assert "10.0.0.2" not in {host for host, _ in with_status(checks, Status.ERROR)}


def test_a_spare_is_looked_at_for_every_case_in_which_it_may_take_a_place(tmp_path: Path) -> None:
    """As if it had the first place, by the preflight and by doctor alike."""
    tree = make_tree(tmp_path)
    spare = 'SPARE_HOSTS = ["192.0.2.9"]\n'
    tree.configure(cluster_conf=CLUSTER_CONF + spare)
    plan = tree.load()
    allocator = FixedHosts(plan.cluster, lambda name: cast(Transport, name))
    planned, spares = castings(plan, allocator)
    assert "192.0.2.9" not in [host.name for host in planned.hosts]
    assert [host.name for host in spares.hosts] == ["192.0.2.9"]
    (place,) = places_of(spares.hosts, spares.casts)["192.0.2.9"]
    assert (place.case.settings.name, place.rank) == (plan.cases[0].settings.name, 0)
    assert place.addresses == ("192.0.2.9", *plan.cases[0].hosts[1:])
