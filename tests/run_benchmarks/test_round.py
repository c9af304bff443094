"""What a round does where its runtime fails it: with a FAKE runtime; hosts, files and commands are real."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from run_benchmarks.display import PlainLines
from run_benchmarks.journal import Journal
from run_benchmarks.names import RunId, host_paths
from run_benchmarks.report.results import RoundResult
from run_benchmarks.round import Round
from run_benchmarks.runtimes.base import Mount, Runtime, Unit
from run_benchmarks.session import Session
from run_benchmarks.stages.deploy import tree_of
from run_benchmarks.transports.base import CommandError, Completed, Transport, TransportError
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.plan.tree import TEST_CONF, make_tree
from utils.errors import FlagPerfError
from utils.records import FailureClass, Stage, Verdict

RUN = RunId("run20260102030405", "run20260102030405-abcdef")


class FakeRuntime:
    """A FAKE runtime. `refuse`: part of a unit's name -> the error that its start ends with."""

    name = "fake"
    uses_images = False

    def __init__(self, refuse: Mapping[str, FlagPerfError] | None = None, code: int = 0) -> None:
        self.refuse = refuse or {}
        self.code = code
        self.told: list[tuple[str, str]] = []

    def path_inside(self, mounts: Sequence[Mount], host_path: str) -> str:
        return host_path

    async def start(self, transport: Transport, unit: Unit) -> None:
        for part, error in self.refuse.items():
            if part in unit.name:
                raise error
        # what is refused is refused long before its neighbour runs
        await asyncio.sleep(0.3 if "node1" in unit.name else 0)
        self.told.append(("started", unit.name))

    async def wait(self, transport: Transport, name: str) -> int:
        return self.code

    async def stop(self, transport: Transport, name: str, grace_s: int) -> None:
        self.told.append(("stopped", name))

    async def remove_all(self, transport: Transport, run_id: str, grace_s: int = 0) -> tuple[str, ...]:
        self.told.append(("removed", transport.host))
        return ()


def run_round(tmp_path: Path, runtime: FakeRuntime) -> RoundResult:
    tree = make_tree(tmp_path)
    conf = TEST_CONF.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:1")
    tree.configure(test_conf=conf.replace("/home/flagperf/training", f"{tmp_path}/fp"))
    tree.configure(cluster_conf='HOSTS = ["192.0.2.1", "192.0.2.2"]\n')  # names only: both are this machine
    plan, log_dir = tree.load(), tmp_path / "result" / RUN.name
    log_dir.mkdir(parents=True)

    async def scenario() -> RoundResult:
        packed = tree_of(plan)
        session = Session(
            plan=plan,
            run=RUN,
            log_dir=log_dir,
            paths=host_paths(plan.run, RUN, packed.digest),
            tree=packed,
            transports={host: LocalTransport(host) for host in plan.cluster.hosts},
            runtime=cast(Runtime, runtime),
            journal=Journal(log_dir / "journal.jsonl"),
            progress=PlainLines(),
            interrupt=asyncio.Event(),
        )
        try:
            return await Round(session, plan.cases[0], 1).run()
        finally:
            session.journal.close()

    return asyncio.run(asyncio.wait_for(scenario(), timeout=60))


def refused(why: str) -> CommandError:
    return CommandError(Completed("192.0.2.2", ("docker", "run", "x"), 125, "", why), "look there")


def test_no_unit_is_still_starting_when_all_are_removed(tmp_path: Path) -> None:
    """A monitor is refused at once, while tasks take their time to start."""
    runtime = FakeRuntime({"node1-monitor": refused("no such device")})
    result = run_round(tmp_path, runtime)
    failure = result.failure
    assert failure is not None
    assert (failure.stage, failure.failure_class) == (Stage.LAUNCH, FailureClass.CONTAINER_NOT_STARTED)
    assert failure.host == "192.0.2.2"
    assert "no such device" in failure.evidence
    verbs = [verb for verb, _ in runtime.told]
    assert verbs.count("started") == 3
    assert verbs[-2:] == ["removed", "removed"]
    assert "started" not in verbs[verbs.index("stopped") :]


def test_a_host_that_is_lost_while_it_launches_is_unreachable(tmp_path: Path) -> None:
    lost = TransportError("Connection reset by peer", where="192.0.2.2")
    result = run_round(tmp_path, FakeRuntime({"node1-task": lost}))
    assert result.verdict is Verdict.UNREACHABLE
    assert result.failure is not None and result.failure.host == "192.0.2.2"


def test_a_round_without_a_result_is_invalid_and_its_result_is_written(tmp_path: Path) -> None:
    """Every task exits with 0, but rank 0 has not reported anything."""
    result = run_round(tmp_path, FakeRuntime())
    assert result.verdict is Verdict.INVALID
    path = tmp_path / "result" / RUN.name / "toy:pytorch:X1:2:1:1" / "round1" / "result.json"
    written: dict[str, Any] = json.loads(path.read_text())
    assert written == result.as_dict()
    assert written["failure"]["class"] == "no_result"


@pytest.mark.parametrize("code", [1, 137])
def test_a_task_that_fails_ends_the_round(code: int, tmp_path: Path) -> None:
    runtime = FakeRuntime(code=code)
    result = run_round(tmp_path, runtime)
    assert result.verdict is Verdict.FAILED
    assert result.failure is not None and f"exit code {code}" in result.failure.message
    stopped = [name for verb, name in runtime.told if verb == "stopped"]
    assert len(stopped) == 2 and all(name.endswith("monitor") for name in stopped)  # the tasks had ended
