"""One round with a FAKE runtime; hosts, files and commands are real, and all hosts are this machine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from run_benchmarks.display import PlainLines
from run_benchmarks.hosts.base import Allocator
from run_benchmarks.hosts.fixed import FixedHosts
from run_benchmarks.journal import Journal
from run_benchmarks.names import RunId
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.round import Round
from run_benchmarks.runtimes.base import Mount, Runtime, Unit, UnitState
from run_benchmarks.session import open_session
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.local import LocalTransport
from tests.ports import free_port
from tests.run_benchmarks.plan.tree import TEST_CONF, VENDOR, Tree, make_tree

RUN = RunId("run20260102030405", "run20260102030405-abcdef")


class FakeRuntime:
    """A FAKE runtime. `refuse`: part of a unit's name -> the error that its start ends with."""

    name = "fake"
    python = sys.executable

    def __init__(self, refuse: Mapping[str, Exception] | None = None, code: int = 0) -> None:
        self.refuse = refuse or {}
        self.code = code
        self.calls: list[tuple[str, str]] = []

    def path_inside(self, mounts: Sequence[Mount], host_path: str) -> str:
        return host_path

    async def start(self, transport: Transport, unit: Unit) -> None:
        for part, error in self.refuse.items():
            if part in unit.name:
                raise error
        # what is refused is refused long before its neighbour runs
        await asyncio.sleep(0.3 if "node1" in unit.name else 0)
        self.calls.append(("started", unit.name))

    async def wait(self, transport: Transport, name: str) -> int:
        return self.code

    async def stop(self, transport: Transport, name: str, grace_s: int) -> None:
        self.calls.append(("stopped", name))

    async def last_output(self, transport: Transport, name: str, lines: int = 50) -> str:
        self.calls.append(("asked for its output", name))
        return f"{name}: no such folder"

    async def version(self, transport: Transport) -> str:
        return "20.10"

    async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
        return ()

    async def remove_all(self, transport: Transport, run_id: str, grace_s: int = 0) -> tuple[str, ...]:
        self.calls.append(("removed", transport.host))
        return ()


def run_round(
    tmp_path: Path,
    runtime: FakeRuntime,
    journal: str = "journal.jsonl",
    before: Callable[[Tree, Path], None] = lambda tree, log_dir: None,
    images: bool = False,
    allocator: Allocator | None = None,
) -> RoundResult:
    """A round's result, on the planned hosts or the allocator's; `before` is called when the plan has been loaded."""
    tree = make_tree(tmp_path)
    tree.write("acme/vendor.py", VENDOR.replace('["acme-list"]', '["echo", "Acme X1"]'))
    conf = TEST_CONF.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:1")
    conf = conf.replace("/home/flagperf/training", f"{tmp_path}/fp").replace("/data/toy", f"{tmp_path}/data")
    tree.configure(test_conf=conf + "MIN_FREE_DISK_GIB = 0\n")
    hosts = 'HOSTS = ["192.0.2.1", "192.0.2.2"]'  # names only: both are this machine
    tree.configure(cluster_conf=f"{hosts}\nMASTER_PORT = {free_port()}\n")
    plan, log_dir = tree.load(), tmp_path / "result" / RUN.name
    log_dir.mkdir(parents=True)
    (tmp_path / "data").mkdir()
    before(tree, log_dir)
    opened = open_session(plan, RUN, log_dir, PlainLines())
    session = replace(
        opened,
        allocator=allocator or FixedHosts(plan.cluster, LocalTransport),
        runtime=cast(Runtime, runtime),
        images=opened.images if images else None,
        journal=Journal(log_dir / journal),
    )

    async def scenario() -> RoundResult:
        try:
            return await Round(session, plan.cases[0], 1).run()
        finally:
            session.journal.close()

    return asyncio.run(asyncio.wait_for(scenario(), timeout=60))


def result_file(tmp_path: Path) -> Path:
    return tmp_path / "result" / RUN.name / "toy:pytorch:X1:2:1:1" / "round1" / "result.json"
