"""Process units of two hosts of the lab that keep them in one work folder, as where it is NFS."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from run_benchmarks.names import WORK_FOLDER
from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.runtimes.base import Runtime, Unit
from run_benchmarks.transports import open_transport
from run_benchmarks.transports.base import Transport
from tests.lab.lab import Common, Lab
from tests.run_benchmarks.runtimes.conftest import TRAINING, settings

RUN, OTHER_RUN = "run20261120094218-d7e6a7", "run20261120094218-ffffff"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The common folder, with the program that starts units."""
    (tmp_path / "common" / "tree" / "utils").mkdir(parents=True)
    (tmp_path / "common" / WORK_FOLDER).mkdir(mode=0o700)
    program = TRAINING / "utils" / "process_unit.py"
    shutil.copy(program, tmp_path / "common" / "tree" / "utils" / program.name)
    return tmp_path / "common"


@pytest.fixture
def hosts(lab: Callable[..., Lab], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = lab(hosts=2, fresh=True, common=[Common(folder, str(folder), (1, 2))])
    monkeypatch.setenv("HOME", made.env["HOME"])
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return made


def unit(folder: Path, run: str, node: int, script: str = "exec sleep 600") -> Unit:
    labels = {"flagperf.run": run, "flagperf.node_rank": str(node)}
    name, tree = f"flagperf-{run}-node{node}-task", str(folder / "tree")
    return Unit(name, labels, "", ("sh", "-c", script), tree=tree)


async def listed(runtime: Runtime, transport: Transport, run: str | None = None) -> dict[str, bool]:
    return {each.name: each.running for each in await runtime.list_units(transport, run)}


def test_each_host_sees_and_removes_its_own_units_alone(hosts: Lab, folder: Path) -> None:
    cluster = ClusterSettings(hosts=("h1", "h2"))
    runtime = open_runtime(settings(folder, runtime="process", process_python="/usr/bin/python3"))
    first, second, others = unit(folder, RUN, 0), unit(folder, RUN, 1), unit(folder, OTHER_RUN, 1)

    async def scenario() -> None:
        h1, h2 = (open_transport(name, cluster) for name in ("h1", "h2"))
        try:
            # both make the folder of all units at the same moment
            await asyncio.gather(runtime.start(h1, first), runtime.start(h2, second))
            await runtime.start(h2, others)
            assert await listed(runtime, h1) == {first.name: True}
            assert await listed(runtime, h2) == {second.name: True, others.name: True}
            assert await runtime.remove_all(h1, RUN) == (first.name,)
            assert await runtime.remove_all(h1, OTHER_RUN) == ()
            assert await listed(runtime, h2) == {second.name: True, others.name: True}
            assert await runtime.remove_all(h2, RUN) == (second.name,)
            assert await listed(runtime, h2) == {others.name: True}
            await runtime.stop(h2, others.name, 0)
            assert await runtime.wait(h2, others.name) == 137
            assert await runtime.remove_all(h2, OTHER_RUN) == (others.name,)
        finally:
            await asyncio.gather(h1.close(), h2.close())

    asyncio.run(scenario())
    assert list((folder / ".flagperf" / "units").iterdir()) == []
