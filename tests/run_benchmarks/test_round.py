"""What a round does where its runtime fails it: with a FAKE runtime; hosts, files and commands are real."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from run_benchmarks import round as round_module
from run_benchmarks import round_state
from run_benchmarks.display import PlainLines
from run_benchmarks.images import open_image_store
from run_benchmarks.journal import Journal
from run_benchmarks.names import RunId, host_paths
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.round import Round
from run_benchmarks.round_state import conclude
from run_benchmarks.runtimes.base import Mount, Runtime, Unit
from run_benchmarks.session import Session
from run_benchmarks.stages.deploy import tree_of
from run_benchmarks.transports.base import CommandError, Completed, Transport, TransportError
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.builders import make_case, observed, training_events, write_rank_log
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree, make_tree
from utils.errors import FlagPerfError
from utils.records import FailureClass, Stage, Verdict

RUN = RunId("run20260102030405", "run20260102030405-abcdef")


class FakeRuntime:
    """A FAKE runtime. `refuse`: part of a unit's name -> the error that its start ends with."""

    name = "fake"
    python = sys.executable

    def __init__(self, refuse: Mapping[str, Exception] | None = None, code: int = 0) -> None:
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

    async def last_output(self, transport: Transport, name: str, lines: int = 50) -> str:
        self.told.append(("asked for its output", name))
        return f"{name}: no such folder"

    async def remove_all(self, transport: Transport, run_id: str, grace_s: int = 0) -> tuple[str, ...]:
        self.told.append(("removed", transport.host))
        return ()


def run_round(
    tmp_path: Path,
    runtime: FakeRuntime,
    journal: str = "journal.jsonl",
    before: Callable[[Tree, Path], None] = lambda tree, log_dir: None,
    images: bool = False,
) -> RoundResult:
    """A round's result; `before` is called when the plan has been loaded."""
    tree = make_tree(tmp_path)
    conf = TEST_CONF.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:1")
    tree.configure(test_conf=conf.replace("/home/flagperf/training", f"{tmp_path}/fp"))
    tree.configure(cluster_conf='HOSTS = ["192.0.2.1", "192.0.2.2"]\n')  # names only: both are this machine
    plan, log_dir = tree.load(), tmp_path / "result" / RUN.name
    log_dir.mkdir(parents=True)
    before(tree, log_dir)

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
            images=open_image_store(plan.run) if images else None,
            journal=Journal(log_dir / journal),
            progress=PlainLines(),
            interrupt=asyncio.Event(),
        )
        try:
            return await Round(session, plan.cases[0], 1).run()
        finally:
            session.journal.close()

    return asyncio.run(asyncio.wait_for(scenario(), timeout=60))


def result_file(tmp_path: Path) -> Path:
    return tmp_path / "result" / RUN.name / "toy:pytorch:X1:2:1:1" / "round1" / "result.json"


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
    written: dict[str, Any] = json.loads(result_file(tmp_path).read_text())
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


def test_a_task_that_fails_before_its_log_opens_is_explained_by_what_it_printed(tmp_path: Path) -> None:
    runtime = FakeRuntime(code=1)
    result = run_round(tmp_path, runtime)
    failure = result.failure
    assert failure is not None and failure.evidence.endswith("-task: no such folder")
    assert "task_output.log" in failure.remedy
    kept = [path.read_text() for path in result_file(tmp_path).parent.glob("*/task_output.log")]
    assert len(kept) == 2 and failure.evidence in "".join(kept)
    verbs = [verb for verb, _ in runtime.told]
    assert max(n for n, verb in enumerate(verbs) if verb.startswith("asked")) < verbs.index("removed")


def test_logs_that_still_lie_on_a_host_are_not_taken_for_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else they would be removed there: what was printed must not make the node's folder."""

    async def refuse(*arguments: object) -> None:
        raise FlagPerfError("the stream broke off")

    monkeypatch.setattr(round_module, "collect_folder", refuse)
    run_round(tmp_path, FakeRuntime(code=1))
    assert {path.name for path in result_file(tmp_path).parent.iterdir()} == {"result.json", "round.json"}


def test_an_error_that_no_stage_knows_fails_the_round_and_nothing_stays(
    tmp_path: Path, log_lines: LogLines
) -> None:
    runtime = FakeRuntime({"node1-task": OSError(errno.ENOSPC, "No space left on device")})
    result = run_round(tmp_path, runtime)
    failure = result.failure
    assert failure is not None and result.verdict is Verdict.FAILED
    assert (failure.stage, failure.failure_class) == (Stage.LAUNCH, FailureClass.CONTROLLER_ERROR)
    assert "OSError" in failure.message and "No space left" in failure.message
    assert "free space" in failure.remedy
    assert "Traceback" in log_lines.text and "in start" in log_lines.text
    verbs = [verb for verb, _ in runtime.told]
    assert verbs[-2:] == ["removed", "removed"]
    assert result_file(tmp_path).is_file()


def test_an_image_that_cannot_be_planned_fails_the_round_at_its_stage(tmp_path: Path) -> None:
    def lose_the_dockerfile(tree: Tree, log_dir: Path) -> None:
        shutil.rmtree(tree.training / "acme/docker_image")

    runtime = FakeRuntime()
    result = run_round(tmp_path, runtime, before=lose_the_dockerfile, images=True)
    assert result.failure is not None
    assert (result.verdict, result.failure.stage) == (Verdict.FAILED, Stage.IMAGE)
    assert "docker_image" in result.failure.message
    assert ("removed", "192.0.2.2") in runtime.told
    assert result_file(tmp_path).is_file()


def test_a_full_disk_ends_neither_the_round_nor_its_clean_up(tmp_path: Path, log_lines: LogLines) -> None:
    """The journal is on a full disk, and the result cannot be written."""
    runtime = FakeRuntime()
    result = run_round(
        tmp_path,
        runtime,
        journal="/dev/full",
        before=lambda tree, log_dir: result_file(tmp_path).mkdir(parents=True),
    )
    assert [verb for verb, _ in runtime.told][-2:] == ["removed", "removed"]
    assert result.failure is not None and result.failure.failure_class is FailureClass.NO_RESULT
    assert "result.json could not be written" in result.notes[-1]
    assert log_lines.text.count("/dev/full is not complete") == 1


def test_units_are_removed_where_their_logs_break_the_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*arguments: object) -> None:
        raise MemoryError("no memory for the archive")

    monkeypatch.setattr(round_module, "collect_folder", broken)
    runtime = FakeRuntime()
    result = run_round(tmp_path, runtime)
    assert result.failure is not None
    assert (result.failure.stage, result.verdict) == (Stage.COLLECT, Verdict.FAILED)
    assert "no memory for the archive" in result.failure.message
    assert [verb for verb, _ in runtime.told][-2:] == ["removed", "removed"]


def test_an_error_after_a_rank_failed_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*arguments: object) -> None:
        raise MemoryError("no memory for the archive")

    monkeypatch.setattr(round_module, "collect_folder", broken)
    result = run_round(tmp_path, FakeRuntime(code=1))
    assert result.failure is not None and result.failure.stage is Stage.TRAIN
    assert any("no memory for the archive" in note for note in result.notes)


def test_judging_that_breaks_is_the_rounds_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(round_state, "judge", broken)
    result = run_round(tmp_path, FakeRuntime())
    assert result.failure is not None
    assert (result.failure.stage, result.failure.failure_class) == (
        Stage.JUDGE,
        FailureClass.CONTROLLER_ERROR,
    )
    assert json.loads(result_file(tmp_path).read_text()) == result.as_dict()


def test_a_result_that_cannot_be_written_does_not_count_as_converged(tmp_path: Path) -> None:
    case = make_case(["h1"])
    write_rank_log(tmp_path / "h1_noderank0", training_events())
    converged = conclude(case, observed(case), tmp_path)
    assert converged.verdict is Verdict.CONVERGED
    (tmp_path / "result.json").unlink()
    (tmp_path / "result.json").mkdir()
    result = conclude(case, observed(case), tmp_path)
    assert result.verdict is Verdict.FAILED and result.failure is not None
    assert "result.json could not be written" in result.failure.message


def test_what_the_controller_saw_stands_beside_the_result(tmp_path: Path) -> None:
    run_round(tmp_path, FakeRuntime(code=3))
    seen = json.loads(result_file(tmp_path).with_name("round.json").read_text())
    assert (seen["case"], seen["round"], seen["schema"]) == ("toy:pytorch:X1:2:1:1", 1, 2)
    assert {rank: ending["code"] for rank, ending in seen["outcome"]["endings"].items()} == {"0": 3, "1": 3}
    assert seen["time_s"] > 0 and set(seen["times"]) >= {"deploy", "train", "collect"}
    assert seen["failure"] is None  # that is judged from the endings and the logs


def test_an_observation_that_cannot_be_written_is_noted_and_loses_no_result(tmp_path: Path) -> None:
    case = make_case(["h1"])
    write_rank_log(tmp_path / "h1_noderank0", training_events())
    (tmp_path / "round.json").mkdir()
    result = conclude(case, observed(case), tmp_path)
    assert result.verdict is Verdict.CONVERGED
    assert "round.json could not be written" in result.notes[0]
