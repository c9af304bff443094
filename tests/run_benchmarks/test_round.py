"""What a round does where its runtime fails it: with a FAKE runtime; hosts, files and commands are real."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from run_benchmarks import follow, judging, round_end, round_state, round_watch
from run_benchmarks.commands import run_command
from run_benchmarks.hosts.base import Host
from run_benchmarks.names import FOLLOWED_EVENTS, LABEL_RUN
from run_benchmarks.neighbours import look_for_neighbours, watch_for_neighbours
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.results.last_words import LONGEST_CAUSE, LONGEST_LINE
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.round_state import RoundState, judged
from run_benchmarks.runtimes.base import Unit, UnitState
from run_benchmarks.session import Interruption, Session
from run_benchmarks.stages.collect_listing import LeftOut
from run_benchmarks.stages.watch import Ended, Outcome
from run_benchmarks.transports.base import CommandError, Completed, Transport, TransportError
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.builders import conclude, make_case, observed, training_events, write_rank_log
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.one_round import RUN, result_file, run_round
from tests.run_benchmarks.plan.tree import Tree
from utils import monitors
from utils.errors import FlagPerfError
from utils.events import format_line
from utils.records import FailureClass, Stage, Verdict


def refused(why: str) -> CommandError:
    return CommandError(Completed("192.0.2.2", ("docker", "run", "x"), 125, "", why), "look there")


def test_no_unit_is_still_starting_when_all_are_removed(tmp_path: Path) -> None:
    """A task is refused at once, while its peer and the monitors take their time to start."""
    runtime = FakeRuntime({"node1-task": refused("no such device")})
    result = run_round(tmp_path, runtime)
    failure = result.failure
    assert failure is not None
    assert (failure.stage, failure.failure_class) == (Stage.LAUNCH, FailureClass.CONTAINER_NOT_STARTED)
    assert failure.host == "192.0.2.2"
    assert "no such device" in failure.evidence
    verbs = [verb for verb, _ in runtime.calls]
    assert verbs.count("started") == 3
    assert verbs[-2:] == ["removed", "removed"]
    assert "started" not in verbs[verbs.index("stopped") :]


def test_a_monitor_that_does_not_start_fails_no_round(tmp_path: Path) -> None:
    result = run_round(tmp_path, FakeRuntime({"node1-monitor": refused("no such device")}))
    assert (
        result.failure is not None and result.failure.failure_class is FailureClass.NO_RESULT
    )  # units do nothing
    (note,) = (note for note in result.notes if "monitor" in note)
    assert note.startswith("192.0.2.2: its monitor was not started") and note.endswith("no such device")


def test_a_host_that_is_lost_while_it_launches_is_unreachable(tmp_path: Path) -> None:
    lost = TransportError("Connection reset by peer", where="192.0.2.2")
    result = run_round(tmp_path, FakeRuntime({"node1-task": lost}))
    assert result.verdict is Verdict.UNREACHABLE
    assert result.failure is not None and result.failure.host == "192.0.2.2"


def test_a_signal_is_heard_while_a_round_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop that signals interrupt runs in the main thread."""
    judged_in = []

    def judged_here(*arguments: Any) -> Any:
        judged_in.append(threading.current_thread())
        return judged(*arguments)

    monkeypatch.setattr(judging, "judged", judged_here)
    run_round(tmp_path, FakeRuntime())
    assert len(judged_in) == 1 and judged_in[0] is not threading.main_thread()


def test_a_second_signal_ends_the_judging_and_the_round_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs may take minutes to judge; what came before the judging has hurried the clean-up alone."""
    case, hurried, may_end = make_case(["h1"]), asyncio.Event(), threading.Event()
    session = SimpleNamespace(
        plan=SimpleNamespace(secrets=Secrets()),
        run=RUN,
        interrupt=Interruption(),
        hurried=hurried,
        log_dir=tmp_path,
    )
    hurried.set()

    def never(*arguments: Any) -> Any:
        may_end.wait(60)
        return judged(*arguments)

    async def judge_and_interrupt() -> RoundResult:
        asyncio.get_running_loop().call_later(0.1, hurried.set)
        return await judging.judge_round(cast(Session, session), case, observed(case), tmp_path)

    monkeypatch.setattr(judging, "judged", never)
    result = asyncio.run(judge_and_interrupt())
    may_end.set()
    assert result.verdict is Verdict.INTERRUPTED and result.failure is not None
    again = run_command("show", str(tmp_path), "--rescore")
    assert result.failure.remedy == f"judge it later from its logs: {again}"
    assert json.loads((tmp_path / "result.json").read_text())["verdict"] == "INTERRUPTED"
    assert json.loads((tmp_path / "round.json").read_text())["failure"] is None


def test_a_round_without_a_result_is_invalid_and_its_result_is_written(tmp_path: Path) -> None:
    """Every task exits with 0, but rank 0 has not reported anything."""
    result = run_round(tmp_path, FakeRuntime())
    assert result.verdict is Verdict.INVALID
    written: dict[str, Any] = json.loads(result_file(tmp_path).read_text())
    assert written == result.as_dict()
    assert written["failure"]["class"] == "no_result"


def test_a_monitor_that_is_killed_is_noted_once_and_one_that_ended_well_is_not(
    tmp_path: Path, log_lines: LogLines
) -> None:
    class Killed(FakeRuntime):
        """FAKE. No monitor runs any more; that of the second node was killed, and its host says so many times."""

        async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
            started = [name for verb, name in self.calls if verb == "started"]
            return tuple(UnitState(name, {LABEL_RUN: RUN.uid}, running=False) for name in started * 1000)

        async def wait(self, transport: Transport, name: str) -> int:
            self.waits.append(name)
            return 136 + self.waits.count(name) if name.endswith("node1-monitor") else 0

    runtime = Killed()
    result = run_round(tmp_path, runtime)
    (note,) = (note for note in result.notes if "monitor" in note)
    assert note.startswith("192.0.2.2: its monitor ended before the round did, with exit code 137")
    assert log_lines.text.count(note) == 1
    assert len(runtime.waits) < 20


def running(run: str) -> UnitState:
    return UnitState("flagperf-x", {LABEL_RUN: run}, running=True)


def test_a_round_beside_another_run_says_so_in_its_result(tmp_path: Path) -> None:
    first, later, over = (f"run2026010203040{second}-aaaaaa" for second in (1, 6, 0))
    ended = replace(running(over), running=False)
    seen = {"192.0.2.1": [running(RUN.uid), running(first), ended], "192.0.2.2": [ended]}

    class Shared(FakeRuntime):
        """FAKE. One run was there before this one, another begins beside it."""

        async def start(self, transport: Transport, unit: Unit) -> None:
            seen["192.0.2.2"] = [running(later)]
            await super().start(transport, unit)

        async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
            return tuple(seen[transport.host])

    result = run_round(tmp_path, Shared())
    assert [note for note in result.notes if "doubtful" in note] == [
        f"192.0.2.1 was shared, figures are doubtful: units of {first} ran there too",
        f"192.0.2.2 was shared, figures are doubtful: units of {later} ran there too",
    ]


def test_another_run_that_begins_and_ends_meanwhile_is_seen() -> None:
    later = "run20260102030406-aaaaaa"
    listings = [(), (running(later),), ()]
    over = asyncio.Event()

    class Passing(FakeRuntime):
        """FAKE. Another run is there for a while."""

        async def list_units(self, transport: Transport, run_id: str | None = None) -> tuple[UnitState, ...]:
            units = listings.pop(0) if listings else ()
            if not listings:
                over.set()
            return units

    state, host = RoundState(make_case(), 1, ""), Host("h1", "h1", LocalTransport("h1"))
    noted: list[dict[str, Any]] = []
    journal = SimpleNamespace(write=lambda event, **facts: noted.append({"event": event, **facts}))
    session: Any = SimpleNamespace(runtime=Passing(), run=RUN, journal=journal)

    async def scenario() -> None:
        watch = asyncio.create_task(watch_for_neighbours(session, state, [host], every_s=0.001))
        await asyncio.wait_for(over.wait(), timeout=60)
        watch.cancel()

    asyncio.run(scenario())
    assert state.neighbours == {"h1": {later}}
    assert [(each["event"], each["host"], each["runs"]) for each in noted] == [("neighbours", "h1", [later])]


def test_hosts_that_do_not_say_what_runs_there_cost_the_round_nothing(tmp_path: Path) -> None:
    runtime = FakeRuntime()
    runtime.error = FlagPerfError("no answer")
    assert not any("doubtful" in note for note in run_round(tmp_path, runtime).notes)


def test_a_host_that_never_says_what_runs_there_is_named_once(log_lines: LogLines) -> None:
    runtime, state = FakeRuntime(), RoundState(make_case(), 1, "")
    runtime.error = asyncio.TimeoutError("not done after 10 s")  # type: ignore[assignment]
    session: Any = SimpleNamespace(runtime=runtime, run=RUN)
    host = Host("h1", "h1", LocalTransport("h1"))
    for _ in range(3):
        asyncio.run(look_for_neighbours(session, state, [host]))
    assert log_lines.text.count("whether another run uses it is not known: not done after 10 s") == 1


@pytest.mark.parametrize("code", [1, 137])
def test_a_task_that_fails_ends_the_round(code: int, tmp_path: Path) -> None:
    runtime = FakeRuntime(code=code)
    result = run_round(tmp_path, runtime)
    assert result.verdict is Verdict.FAILED
    assert result.failure is not None and f"exit code {code}" in result.failure.message
    stopped = [name for verb, name in runtime.calls if verb == "stopped"]
    assert len(stopped) == 2 and all(name.endswith("monitor") for name in stopped)  # the tasks had ended
    # a monitor that waits for a slow source and then for its inventory has not been killed by then
    assert min(runtime.graces_s.values()) >= monitors.STOP_GRACE_S + 5


def test_a_task_that_fails_before_its_log_opens_is_explained_by_what_it_printed(tmp_path: Path) -> None:
    runtime = FakeRuntime(code=1)
    result = run_round(tmp_path, runtime)
    failure = result.failure
    assert failure is not None and failure.evidence.endswith("-task: no such folder")
    assert "task_output.log" in failure.remedy
    kept = [path.read_text() for path in result_file(tmp_path).parent.glob("*/task_output.log")]
    assert len(kept) == 2 and failure.evidence in "".join(kept)
    verbs = [verb for verb, _ in runtime.calls]
    assert max(n for n, verb in enumerate(verbs) if verb.startswith("asked")) < verbs.index("removed")


def test_logs_that_still_lie_on_a_host_are_not_taken_for_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_lines: LogLines
) -> None:
    """Else they would be removed there: what was printed must not make the node's folder."""

    async def refuse(transport: Transport, *arguments: object, **options: object) -> None:
        raise FlagPerfError("the stream broke off", where=transport.host)

    monkeypatch.setattr(round_end, "collect_folder", refuse)
    result = run_round(tmp_path, FakeRuntime(code=1))
    hosts = ("192.0.2.1", "192.0.2.2")
    assert [note for note in result.notes if "broke" in note] == [
        f"{host}: the stream broke off" for host in hosts
    ]
    assert not any(f"{host}: {host}" in line for host in hosts for line in log_lines.messages)
    assert {path.name for path in result_file(tmp_path).parent.iterdir()} == {"result.json", "round.json"}


@pytest.mark.parametrize("comes", [False, True])
def test_a_round_whose_logs_do_not_come_is_judged_by_what_was_followed(
    comes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def follow(*arguments: Any) -> None:
        kept = arguments[-1]
        for event in training_events():
            kept.take(event, f"before it {format_line(event)}")
        kept.close()

    async def collect(*arguments: Any, **options: object) -> None:
        if not comes:
            raise FlagPerfError("the stream broke off", where=arguments[0].host)
        if "noderank0" in str(arguments[3]):
            write_rank_log(arguments[3], training_events())

    monkeypatch.setattr(round_watch, "follow_events", follow)
    monkeypatch.setattr(round_end, "collect_folder", collect)
    result = run_round(tmp_path, FakeRuntime())
    # by what it says itself: it had taken longer than the whole round
    assert result.failure is not None and result.facts["converged"]
    assert result.failure.failure_class is FailureClass.INCONSISTENT_RESULT, result.failure
    assert any("followed" in note for note in result.notes) is not comes
    assert (result_file(tmp_path).parent / FOLLOWED_EVENTS).is_file() is not comes


def test_what_found_no_room_of_what_was_followed_is_told_where_the_log_does_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def follow_all(*arguments: Any) -> None:
        for event in training_events():
            arguments[-1].take(event, format_line(event))

    async def collect(*arguments: Any, **options: object) -> None:
        raise FlagPerfError("the stream broke off", where=arguments[0].host)

    monkeypatch.setattr(follow, "KEPT_BYTES", 0)
    monkeypatch.setattr(round_watch, "follow_events", follow_all)
    monkeypatch.setattr(round_end, "collect_folder", collect)
    result = run_round(tmp_path, FakeRuntime())
    assert result.failure is not None
    assert result.failure.failure_class is FailureClass.LOGS_NOT_COLLECTED
    lost = f"{len(training_events())} events of rank 0 are not in {FOLLOWED_EVENTS}"
    assert any(note.startswith(lost) for note in result.notes)


def test_a_log_of_rank_0_that_was_left_out_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leave_out(*arguments: object, **options: object) -> tuple[LeftOut, ...]:
        return (LeftOut("rank0.out.log", "20.0 GiB"),)

    monkeypatch.setattr(round_end, "collect_folder", leave_out)
    result = run_round(tmp_path, FakeRuntime())
    assert result.failure is not None
    assert (result.failure.failure_class, result.failure.host) == (
        FailureClass.LOGS_NOT_COLLECTED,
        "192.0.2.1",
    )
    assert "rank0.out.log (20.0 GiB)" in result.failure.message
    assert len([note for note in result.notes if "rank0.out.log (20.0 GiB)" in note]) == 2  # of each node


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
    assert "Traceback" not in log_lines.text, "the traceback is for the file"
    assert "the controller's disk is full: OSError: " in log_lines.text
    (detail,) = log_lines.details
    assert "Traceback" in detail and "in start" in detail
    verbs = [verb for verb, _ in runtime.calls]
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
    assert ("removed", "192.0.2.2") in runtime.calls
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
    assert [verb for verb, _ in runtime.calls][-2:] == ["removed", "removed"]
    assert result.failure is not None and result.failure.failure_class is FailureClass.NO_RESULT
    assert "result.json could not be written" in result.notes[-1]
    assert log_lines.text.count("/dev/full cannot be written") == 1


def test_units_are_removed_where_their_logs_break_the_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*arguments: object, **options: object) -> None:
        raise MemoryError("no memory for the archive")

    monkeypatch.setattr(round_end, "collect_folder", broken)
    runtime = FakeRuntime()
    result = run_round(tmp_path, runtime)
    assert result.failure is not None
    assert (result.failure.stage, result.verdict) == (Stage.COLLECT, Verdict.FAILED)
    assert "no memory for the archive" in result.failure.message
    assert [verb for verb, _ in runtime.calls][-2:] == ["removed", "removed"]


def test_an_error_after_a_rank_failed_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*arguments: object, **options: object) -> None:
        raise MemoryError("no memory for the archive")

    monkeypatch.setattr(round_end, "collect_folder", broken)
    result = run_round(tmp_path, FakeRuntime(code=1))
    assert result.failure is not None and result.failure.stage is Stage.TRAIN
    assert any("no memory for the archive" in note for note in result.notes)


def test_judging_that_breaks_is_the_rounds_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(round_state, "without_secrets", broken)
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


def test_a_secret_where_a_long_line_of_evidence_is_cut_is_hidden_before(tmp_path: Path) -> None:
    case = make_case(["h1"])
    node = tmp_path / "h1_noderank0"
    node.mkdir()
    begin = "-" * (LONGEST_LINE - 8)
    (node / "start_pytorch_task.log").write_text(f"{begin}open sesame, and no other words\n")
    seen = observed(case, outcome=Outcome({0: Ended(1, 1.0)}, False, {}))
    result = conclude(case, seen, tmp_path, Secrets(held=frozenset({"open sesame, and"})))
    assert result.failure is not None
    assert result.failure.evidence.startswith(f"{begin}*** no ")
    assert "sesame" not in (tmp_path / "result.json").read_text()


def test_a_secret_where_a_line_is_cut_for_the_message_is_hidden_before(tmp_path: Path) -> None:
    case = make_case(["h1"])
    node = tmp_path / "h1_noderank0"
    node.mkdir()
    begin = "ValueError: ".ljust(LONGEST_CAUSE - 8, "-")
    (node / "start_pytorch_task.log").write_text(f"{begin}open sesame, and no other words\n")
    seen = observed(case, outcome=Outcome({0: Ended(1, 1.0)}, False, {}))
    result = conclude(case, seen, tmp_path, Secrets(held=frozenset({"open sesame, and"})))
    assert result.failure is not None
    assert f"{begin}*** no" in result.failure.message
    assert "open" not in result.failure.message


def test_what_the_controller_saw_stands_beside_the_result(tmp_path: Path) -> None:
    run_round(tmp_path, FakeRuntime(code=3))
    seen = json.loads(result_file(tmp_path).with_name("round.json").read_text())
    assert (seen["case"], seen["round"], seen["schema"]) == ("toy:pytorch:X1:2:1:1", 1, 3)
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
