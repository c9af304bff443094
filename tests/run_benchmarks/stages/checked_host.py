"""A plan and a host to check: this machine, but for a FAKE runtime and the answers that it cannot give."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import Check, Checker, HostUse, Place, Status, outcome
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.plan.tree import TEST_CONF, VENDOR, Tree
from utils import manifest

TWO_NODES = TEST_CONF.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:1")


@dataclass
class Site:
    """A plan and the host that is checked; everything of it is in `folder`."""

    folder: Path
    tree: Tree
    port: int
    runtime: FakeRuntime = field(default_factory=FakeRuntime)
    transport: Transport = field(default_factory=lambda: LocalTransport("node1"))
    rank: int = 0

    def devices(self, script: str) -> None:
        """Let the vendor's list command be this shell script."""
        command = self.folder / "acme-list"
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
        text = VENDOR.replace('"acme-list"', repr(str(command)))
        self.tree.write("acme/vendor.py", text)

    def hosts(self, *names: str, port: int | None = None) -> None:
        """Write cluster_conf.py."""
        text = f'HOSTS = {list(names)!r}\nMASTER_PORT = "{port or self.port}"\n'
        self.tree.configure(cluster_conf=text)

    def conf(self, more: str = "", base: str = TEST_CONF) -> None:
        """Write test_conf.py, with the paths of this site and `more` lines."""
        text = base.replace(
            'FLAGPERF_PATH = "/home/flagperf/training"', f'FLAGPERF_PATH = "{self.folder}/fp"'
        )
        text = text.replace('"/data/toy"', repr(str(self.folder / "data")))
        self.tree.configure(test_conf=text + more)

    @property
    def plan(self) -> Plan:
        return self.tree.load()

    def check(self, checker: Checker) -> Check:
        plan = self.plan
        use = HostUse(self.transport, tuple(Place(case, self.rank, case.hosts) for case in plan.cases))
        return asyncio.run(outcome(checker, plan, cast(Runtime, self.runtime), use))


def prepare(folder: Path) -> None:
    """A data set with a manifest."""
    (folder / "train").mkdir(parents=True)
    (folder / "train" / "shard_0.hdf5").write_bytes(b"x" * 100)
    (folder / "train" / "shard_1.hdf5").write_bytes(b"y" * 200)
    names = ["train/shard_0.hdf5", "train/shard_1.hdf5"]
    manifest.write(folder, manifest.Manifest("toy", "test", {}, {}, manifest.describe(folder, names)))


def assert_ok(check: Check, detail: str) -> None:
    """The check passed and tells this."""
    assert check.status is Status.OK, check
    assert detail in check.detail
    assert check.remedy == ""


def assert_skipped(check: Check) -> None:
    """Nothing asked for the check."""
    assert (check.status, check.detail, check.remedy) == (Status.SKIPPED, "", "")


def assert_bad(check: Check, status: Status, detail: str, remedy: str) -> None:
    """The check did not pass; it tells this, and what to do."""
    assert check.status is status, check
    assert detail in check.detail
    assert remedy in check.remedy
