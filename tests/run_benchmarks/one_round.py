"""One round with a FAKE runtime; hosts, files and commands are real, and all hosts are this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from run_benchmarks.display.lines import PlainLines
from run_benchmarks.hosts.base import Allocator
from run_benchmarks.hosts.fixed import FixedHosts
from run_benchmarks.journal import Journal
from run_benchmarks.names import RunId
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.round import Round
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.session import Session, open_session
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.runtime import FakeRuntime
from tests.ports import free_port
from tests.run_benchmarks.plan.tree import TEST_CONF, VENDOR, Tree, make_tree

RUN = RunId("run20260102030405", "run20260102030405-abcdef", "2026-01-02T03:04:05+00:00")


def run_round(
    tmp_path: Path,
    runtime: FakeRuntime,
    journal: str = "journal.jsonl",
    before: Callable[[Tree, Path], None] = lambda tree, log_dir: None,
    images: bool = False,
    allocator: Allocator | None = None,
) -> RoundResult:
    """A round's result, on the planned hosts or the allocator's; `before` is called when the plan has been loaded."""
    session = make_session(tmp_path, runtime, journal, before, images, allocator)

    async def scenario() -> RoundResult:
        try:
            return await Round(session, session.plan.cases[0], 1).run()
        finally:
            session.journal.close()

    return asyncio.run(asyncio.wait_for(scenario(), timeout=60))


def make_session(
    tmp_path: Path,
    runtime: FakeRuntime,
    journal: str = "journal.jsonl",
    before: Callable[[Tree, Path], None] = lambda tree, log_dir: None,
    images: bool = False,
    allocator: Allocator | None = None,
    cluster_conf: str = "",
    test_conf: str = "",
) -> Session:
    """A run of one case on two hosts that is about to begin; its settings are what is given, and the usual ones."""
    tree = make_tree(tmp_path)
    tree.write("acme/vendor.py", VENDOR.replace('["acme-list"]', '["echo", "Acme X1"]'))
    conf = TEST_CONF.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:1")
    conf = conf.replace("/home/flagperf/training", f"{tmp_path}/fp").replace("/data/toy", f"{tmp_path}/data")
    tree.configure(test_conf=f"{conf}MIN_FREE_DISK_GIB = 0\n{test_conf}")
    hosts = 'HOSTS = ["192.0.2.1", "192.0.2.2"]'  # names only: both are this machine
    tree.configure(cluster_conf=f"{hosts}\nMASTER_PORT = {free_port()}\n{cluster_conf}")
    plan, log_dir = tree.load(), tmp_path / "result" / RUN.name
    log_dir.mkdir(parents=True)
    (tmp_path / "data").mkdir()
    before(tree, log_dir)
    opened = open_session(plan, RUN, log_dir, PlainLines())
    return replace(
        opened,
        allocator=allocator or FixedHosts(plan.cluster, LocalTransport),
        runtime=cast(Runtime, runtime),
        images=opened.images if images else None,
        journal=Journal(log_dir / journal),
    )


def result_file(tmp_path: Path) -> Path:
    return tmp_path / "result" / RUN.name / "toy:pytorch:X1:2:1:1" / "round1" / "result.json"
