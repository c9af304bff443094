"""Rank killed by the kernel's OOM killer in a memory-limited container · container removed by hand: real containers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.frameworks import open_framework
from run_benchmarks.names import node_folder_name
from run_benchmarks.results.evidence import NodeLogs, explain
from run_benchmarks.runtimes.base import Mount, UnitGoneError
from run_benchmarks.stages.watch import Ended, Outcome, Watch
from run_benchmarks.transports.base import Transport
from tests.run_benchmarks.builders import make_nodes
from tests.run_benchmarks.runtimes.conftest import TRAINING, Bench, bench_of
from utils.records import Failure, FailureClass

BASE_IMAGE = os.environ.get("FLAGPERF_TEST_BASE_IMAGE") or "flagperf-base:bookworm"
LIMIT = ("--memory=64m", "--memory-swap=64m")
GREEDY = "held = [bytes(range(256)) * 40_000 for _ in range(100)]"
LAUNCH = (
    "python3 -m utils.node --nnodes 1 --node-rank 0 --nproc 1 --master-addr h --master-port 1 --log-dir /logs "
    '-- python3 -c "$1" >/logs/start_pytorch_task.log 2>&1'
)


@pytest.fixture
def containers(tmp_path: Path) -> Iterator[Bench]:
    yield from bench_of("docker", tmp_path)


def ended(bench: Bench, unit: str, meanwhile: tuple[str, ...] = ()) -> Outcome:
    """How the unit ends on the one node, and what the engine is told while it runs."""

    async def scenario(transport: Transport) -> Outcome:
        watch = Watch(bench.runtime, {"h1": transport}, {0: unit}, 20.0, lambda: None)
        watching = asyncio.create_task(watch.run(make_nodes(["h1"]), 60.0))
        if meanwhile:
            await asyncio.sleep(1.0)
            await transport.run(meanwhile)
        return await watching

    return bench.use(scenario)


def failure_of(outcome: Outcome, folder: Path) -> Failure:
    explanation = explain([NodeLogs(0, "h1", folder)], outcome, open_framework("pytorch"), 60.0)
    assert explanation.failure is not None
    return explanation.failure


@pytest.mark.parametrize("launched", [True, False], ids=["rank", "whole task"])
def test_a_rank_that_its_containers_memory_limit_killed(
    launched: bool, containers: Bench, tmp_path: Path
) -> None:
    folder = tmp_path / node_folder_name("h1", 0)
    folder.mkdir()
    unit = containers.unit(LAUNCH if launched else 'exec python3 -c "$1"', GREEDY)
    mounts = (Mount(str(TRAINING), "/tree"), Mount(str(folder), "/logs", read_only=False))
    unit = replace(unit, image=BASE_IMAGE, options=LIMIT, mounts=mounts, workdir="/tree")
    containers.use(lambda transport: containers.runtime.start(transport, unit))
    outcome = ended(containers, unit.name)
    assert isinstance(outcome.endings[0], Ended) and outcome.endings[0].code == 137
    failure = failure_of(outcome, folder)
    assert failure.failure_class is FailureClass.CONTAINER_OUT_OF_MEMORY
    assert "SIGKILL" in failure.message and failure.message.startswith("rank 0 ") is launched


def test_a_container_that_somebody_removes_is_told_apart_from_one_that_was_killed(
    containers: Bench, tmp_path: Path
) -> None:
    engine = containers.engine[0]
    for how, kind in (("rm --force", FailureClass.TASK_REMOVED), ("kill", FailureClass.RANK_KILLED)):
        unit = containers.unit("sleep 60", name=how[:2])
        containers.use(lambda transport, unit=unit: containers.runtime.start(transport, unit))  # type: ignore[misc]
        outcome = ended(containers, unit.name, (engine, *how.split(), unit.name))
        assert failure_of(outcome, tmp_path / "nowhere").failure_class is kind, outcome
    with pytest.raises(UnitGoneError):
        containers.use(lambda transport: containers.runtime.wait(transport, f"{containers.run}-rm"))
