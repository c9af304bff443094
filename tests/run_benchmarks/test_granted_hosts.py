"""A round on hosts that are known only when they are granted, as a scheduler does: all are this machine."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks import round as one_round
from run_benchmarks import round_hosts, session
from run_benchmarks.health import unhealthy
from run_benchmarks.hosts.base import Allocation, AllocationError, Host, WaitEndedError
from run_benchmarks.hosts.granted import AllocationEnd, GrantedJob
from run_benchmarks.leaving import leave_once_more
from run_benchmarks.names import nodes_of
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.reading import parsed
from run_benchmarks.results.folder import RoundKey
from run_benchmarks.results.round_result import Observation, RoundResult
from run_benchmarks.resumption import RoundSoFar
from run_benchmarks.round import Round
from run_benchmarks.session import Session
from run_benchmarks.stages.checks import Check, Status
from run_benchmarks.stages.watch import Ended, Outcome
from run_benchmarks.transports.base import Completed, TransportError
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.out_of_reach import OutOfReach
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.builders import observed
from tests.run_benchmarks.one_round import RUN, make_session, result_file, run_round
from utils.records import FailureClass, Stage, Verdict


class Granted:
    """A scheduler that names its nodes when it grants them; their peers reach them by another address."""

    keeps = True
    standing = ()

    def __init__(self, *names: str) -> None:
        self.names = names or ("gpu7", "gpu3")
        self.given_back = False

    def planned(self, case: CasePlan) -> tuple[Host, ...]:
        return ()

    @asynccontextmanager
    async def acquire(self, case: CasePlan, earlier: GrantedJob | None = None) -> AsyncIterator[Allocation]:
        await asyncio.sleep(0.2)  # the queue
        hosts = (Host(name, f"10.0.0.{n}", self.open(name)) for n, name in enumerate(self.names))
        yield Allocation(tuple(hosts))
        self.given_back = True

    def open(self, name: str) -> LocalTransport:
        return LocalTransport(name)

    @asynccontextmanager
    async def revisit(self, names: Sequence[str]) -> AsyncIterator[Sequence[Host]]:
        """None: none is granted again."""
        yield ()

    def avoid(self, host: str) -> None:
        """Another is never granted."""

    async def close(self) -> None:
        """Nothing is held."""


class Units(FakeRuntime):
    """Keeps the units that it was to start."""

    def __init__(self) -> None:
        super().__init__()
        self.argvs: dict[str, Sequence[str]] = {}

    async def start(self, transport: Any, unit: Any) -> None:
        self.argvs[transport.host + unit.labels["flagperf.role"]] = unit.argv
        await super().start(transport, unit)


def journal(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "result" / RUN.name / "journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_the_round_runs_on_what_it_is_granted(tmp_path: Path) -> None:
    hosts, runtime = Granted(), Units()
    result = run_round(tmp_path, runtime, allocator=hosts)
    assert result.hosts == ("gpu7", "gpu3")
    assert result.failure is not None and result.failure.failure_class is FailureClass.NO_RESULT
    argv = runtime.argvs["gpu3task"]
    assert argv[argv.index("--master-addr") + 1] == "10.0.0.0"
    assert argv[argv.index("--node-rank") + 1] == "1"
    assert hosts.given_back
    assert result_file(tmp_path).with_name("gpu3_noderank1").is_dir()
    stages = [record["stage"] for record in journal(tmp_path) if record["event"] == "stage"]
    assert stages[:3] == ["acquire", "preflight", "deploy"]
    (acquired,) = (record for record in journal(tmp_path) if record["event"] == "acquired")
    assert acquired["hosts"] == ["gpu7", "gpu3"]
    # waiting in a queue is not the round's time
    assert result.figures["round_time"].value < sum(result.times.values())


def test_what_all_hosts_lack_is_the_configurations_and_a_result_of_the_round(tmp_path: Path) -> None:
    hosts, runtime = Granted(), FakeRuntime()

    def lose_the_data(tree: Any, log_dir: Path) -> None:
        (tmp_path / "data").rmdir()

    result = run_round(tmp_path, runtime, before=lose_the_data, allocator=hosts)
    failure = result.failure
    assert failure is not None and result.verdict is Verdict.FAILED
    assert (failure.stage, failure.failure_class) == (Stage.PREFLIGHT, FailureClass.HOSTS_NOT_PREPARED)
    assert failure.failure_class.fault is None  # no other hosts are asked for
    assert failure.host == "gpu7" and "does not exist" in failure.message
    assert "put the data there" in failure.remedy
    assert [verb for verb, _ in runtime.calls][-2:] == ["removed", "removed"]
    assert "started" not in {verb for verb, _ in runtime.calls}
    assert hosts.given_back


@pytest.mark.parametrize(
    ("name", "details", "kind"),
    [
        ("data", ("/data is not on gpu7", "/data is not on gpu3"), FailureClass.HOSTS_NOT_PREPARED),
        ("data", ("/data is not on gpu7", ""), FailureClass.HOST_NOT_HEALTHY),
        ("data", ("/data is not on gpu7", "no answer"), FailureClass.HOST_NOT_HEALTHY),
        ("devices", ("none", "none"), FailureClass.HOST_NOT_HEALTHY),
        ("data", ("/data is not on gpu7",), FailureClass.HOST_NOT_HEALTHY),
    ],
)
def test_what_one_host_lacks_another_may_have(name: str, details: Sequence[str], kind: FailureClass) -> None:
    checks = {
        host: [Check(name, Status.ERROR if detail else Status.OK, detail)]
        for host, detail in zip(("gpu7", "gpu3"), details, strict=False)
    }
    failure = unhealthy(checks)
    assert failure is not None and failure.failure_class is kind


def test_a_node_that_is_never_reached_is_unreachable(tmp_path: Path) -> None:
    class Gone(LocalTransport):
        async def run(self, argv: Sequence[str], **options: Any) -> Completed:
            raise TransportError("the job was cancelled", where=self.host)

    class Revoked(Granted):
        def open(self, name: str) -> LocalTransport:
            return Gone(name) if name == "gpu3" else LocalTransport(name)

    result = run_round(tmp_path, FakeRuntime(), allocator=Revoked())
    assert result.verdict is Verdict.UNREACHABLE
    assert result.failure is not None and result.failure.host == "gpu3"


@pytest.mark.parametrize("names", [("gpu7",), ("gpu7", "gpu3", "gpu1"), ("gpu7", "gpu7")])
def test_another_number_of_hosts_than_the_case_has_nodes_is_refused(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    result = run_round(tmp_path, FakeRuntime(), allocator=Granted(*names))
    assert result.failure is not None
    assert result.failure.failure_class is FailureClass.HOSTS_NOT_ACQUIRED
    assert f"hosts granted: {len(set(names))}, nodes of the case: " in result.failure.message


def test_hosts_that_are_refused_are_a_result_of_the_round(tmp_path: Path) -> None:
    class Full(Granted):
        @asynccontextmanager
        async def acquire(
            self, case: CasePlan, earlier: GrantedJob | None = None
        ) -> AsyncIterator[Allocation]:
            raise AllocationError(
                "more nodes than the partition has", where="slurm", remedy="set nnodes to 1"
            )
            yield Allocation(())

    result = run_round(tmp_path, FakeRuntime(), allocator=Full())
    failure = result.failure
    assert failure is not None and result.verdict is Verdict.FAILED
    assert (failure.stage, failure.failure_class) == (Stage.ACQUIRE, FailureClass.HOSTS_NOT_ACQUIRED)
    assert (failure.message, failure.remedy) == ("more nodes than the partition has", "set nnodes to 1")
    assert result.hosts == ()
    assert json.loads(result_file(tmp_path).read_text()) == result.as_dict()


WELL = Outcome({rank: Ended(0, 0.0) for rank in range(2)}, timed_out=False, out_of_contact={})


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize(
    ("names", "outcome", "kind"),
    [
        (("gpu7", "gpu3"), None, FailureClass.NODE_FAILED),
        (("gpu7", "gpu3"), WELL, FailureClass.NO_RESULT),  # as what rank 0 wrote is no result
        (("gpu3", "gpu7"), WELL, FailureClass.NODE_FAILED),
    ],
    ids=["while it trained", "after it had ended", "after it had ended, with rank 0's log"],
)
def test_of_hosts_that_were_taken_away_before_the_round_is_taken_up_those_in_reach_give_their_logs(
    names: tuple[str, str], outcome: Outcome | None, kind: FailureClass, keeps: bool, tmp_path: Path
) -> None:
    end = AllocationEnd(Verdict.UNREACHABLE, FailureClass.NODE_FAILED, "gpu3 failed", "", "")

    gone = OutOfReach("gpu3", keeps=False)

    class OneIsGone(Granted):
        @asynccontextmanager
        async def acquire(
            self, case: CasePlan, earlier: GrantedJob | None = None
        ) -> AsyncIterator[Allocation]:
            if keeps:
                raise AllocationError.by(end)
            ways = {"gpu7": self.open("gpu7"), "gpu3": gone}
            yield Allocation(tuple(Host(name, name, ways[name]) for name in names), end=end)

        @asynccontextmanager
        async def revisit(self, names: Sequence[str]) -> AsyncIterator[Sequence[Host]]:
            yield [Host(name, name, self.open(name)) for name in names if name == "gpu7"]

    hosts = OneIsGone()
    hosts.keeps = keeps
    made = make_session(tmp_path, FakeRuntime(), allocator=hosts)
    case = replace(made.plan.cases[0], hosts=())
    for node in nodes_of(replace(case, hosts=names), 1):
        folder = Path(made.paths.node(node))
        folder.mkdir(parents=True)
        (folder / f"rank{node.rank}.out.log").write_text("a line\n")
    seen = Observation(
        case=case.settings.name, round=1, hosts=names, started=RUN.started, time_s=1.0, outcome=outcome
    )
    stage = Stage.COLLECT if outcome else Stage.TRAIN
    begun = RoundSoFar(RoundKey(case.settings.name, 1), stage.value, seen, time.time(), stage)

    async def scenario() -> RoundResult:
        result = await one_round.Round(made, case, 1, begun).run()
        result_notes.extend([*result.notes, *await leave_once_more(made)])
        return result

    result_notes: list[str] = []
    result = asyncio.run(asyncio.wait_for(scenario(), 60))
    assert result.failure and result.failure.failure_class is kind
    assert result.hosts == names and ("gpu3 failed" in result.notes) is bool(outcome)
    rank = names.index("gpu7")
    assert result_file(tmp_path).with_name(f"gpu7_noderank{rank}").joinpath(f"rank{rank}.out.log").is_file()
    (missing,) = (note for note in result_notes if "were not collected" in note)
    assert missing.startswith("gpu3: ") and ("they still lie on gpu3" in missing) is keeps
    assert any("may be left on gpu3" in note for note in result_notes) is keeps


@pytest.mark.parametrize("brought", [("rank0.out.log", "monitor.log"), ("monitor.log",)])
def test_what_a_killed_controller_brought_of_hosts_that_are_gone_is_noted_in_the_result(
    brought: Sequence[str], tmp_path: Path
) -> None:
    """It may be a part: what was left out of it, it could not say any more. Without rank 0's log there is no result."""
    end = AllocationEnd(Verdict.UNREACHABLE, FailureClass.NODE_FAILED, "the job is over", "", "")

    class Gone(Granted):
        @asynccontextmanager
        async def acquire(
            self, case: CasePlan, earlier: GrantedJob | None = None
        ) -> AsyncIterator[Allocation]:
            raise AllocationError.by(end)
            yield

    made = make_session(tmp_path, FakeRuntime(), allocator=Gone())
    case = replace(made.plan.cases[0], hosts=())
    names = ("gpu7", "gpu3")
    folder = made.log_dir / nodes_of(replace(case, hosts=names), 1)[0].folder
    folder.mkdir(parents=True)
    for name in brought:
        (folder / name).write_text("a line\n")
    seen = Observation(
        case=case.settings.name, round=1, hosts=names, started=RUN.started, time_s=1.0, outcome=WELL
    )
    begun = RoundSoFar(RoundKey(case.settings.name, 1), "collect", seen, time.time(), Stage.COLLECT)
    result = asyncio.run(asyncio.wait_for(Round(made, case, 1, begun).run(), 60))
    # in the log there is no result either
    kind = FailureClass.NO_RESULT if "rank0.out.log" in brought else FailureClass.NODE_FAILED
    assert result.failure and result.failure.failure_class is kind
    partial, missing = sorted(note for note in result.notes if note.startswith("gpu"))[::-1]
    assert partial.startswith("gpu7: its logs are here as far as a controller brought them that then died")
    assert missing.startswith("gpu3: the logs were not collected")
    assert json.loads(result_file(tmp_path).read_text())["notes"] == list(result.notes)


def test_hosts_that_cannot_be_given_back_do_not_cost_the_result(tmp_path: Path) -> None:
    class Keeps(Granted):
        @asynccontextmanager
        async def acquire(
            self, case: CasePlan, earlier: GrantedJob | None = None
        ) -> AsyncIterator[Allocation]:
            async with super().acquire(case) as allocation:
                yield allocation
            raise AllocationError("scancel: job 7 is not yours")

    result = run_round(tmp_path, FakeRuntime(), allocator=Keeps())
    assert result.failure is not None and result.failure.failure_class is FailureClass.NO_RESULT
    assert any("scancel: job 7 is not yours" in note for note in result.notes)


def test_an_allocation_that_cancels_what_goes_on_in_it_fails_the_round_and_ends_it_in_order(
    tmp_path: Path,
) -> None:
    """As an `asyncio.TaskGroup` around the hosts does when the task in it that keeps them fails."""

    class Revoked(Granted):
        @asynccontextmanager
        async def acquire(
            self, case: CasePlan, earlier: GrantedJob | None = None
        ) -> AsyncIterator[Allocation]:
            held_by = asyncio.current_task()
            assert held_by is not None
            async with super().acquire(case) as allocation:
                asyncio.get_running_loop().call_later(1.0, held_by.cancel)
                yield allocation

    hosts, runtime = Revoked(), FakeRuntime(ends={})
    result = run_round(tmp_path, runtime, allocator=hosts)
    assert result.failure is not None and result.verdict is Verdict.FAILED
    assert result.failure.failure_class is FailureClass.CONTROLLER_ERROR
    assert "the allocation of its hosts may be lost" in result.failure.message
    assert [verb for verb, _ in runtime.calls][-2:] == ["removed", "removed"]
    assert hosts.given_back


def test_a_give_back_that_is_cancelled_from_within_does_not_cost_the_result(tmp_path: Path) -> None:
    class Cancelled(Granted):
        @asynccontextmanager
        async def acquire(
            self, case: CasePlan, earlier: GrantedJob | None = None
        ) -> AsyncIterator[Allocation]:
            async with super().acquire(case) as allocation:
                yield allocation
            raise asyncio.CancelledError

    result = run_round(tmp_path, FakeRuntime(), allocator=Cancelled())
    assert json.loads(result_file(tmp_path).read_text()) == result.as_dict()


def test_what_was_seen_is_written_before_the_hosts_are_given_back_which_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_round, "GIVE_BACK_TIMEOUT_S", 0.1)
    written: list[bool] = []

    class Hangs(Granted):
        @asynccontextmanager
        async def acquire(
            self, case: CasePlan, earlier: GrantedJob | None = None
        ) -> AsyncIterator[Allocation]:
            async with super().acquire(case) as allocation:
                yield allocation
            written.append(result_file(tmp_path).with_name("round.json").is_file())
            await asyncio.Event().wait()

    result = run_round(tmp_path, FakeRuntime(), allocator=Hangs())
    assert written == [True]
    assert "the hosts could not be given back: not done after 0.1 s" in result.notes


def test_a_give_back_that_does_not_heed_its_end_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It swallows its cancel; the next one is that of the end of the program."""
    monkeypatch.setattr(one_round, "GIVE_BACK_TIMEOUT_S", 0.1)
    monkeypatch.setattr(session, "CANCEL_GRACE_S", 0.1)
    let_go = asyncio.Event()

    class Swallows(Granted):
        @asynccontextmanager
        async def acquire(
            self, case: CasePlan, earlier: GrantedJob | None = None
        ) -> AsyncIterator[Allocation]:
            async with super().acquire(case) as allocation:
                yield allocation
            cancelled = 0
            while cancelled < 2:
                try:
                    await let_go.wait()
                except asyncio.CancelledError:
                    cancelled += 1

    result = run_round(tmp_path, FakeRuntime(), allocator=Swallows())
    assert "the hosts could not be given back: not done after 0.1 s" in result.notes


def test_the_hosts_of_a_round_that_is_taken_up_are_asked_for_by_the_job_that_it_had(tmp_path: Path) -> None:
    had = GrantedJob("kubernetes", "job-1", ("gpu7", "gpu3"), pods=("job-1-0-x7k2p", "job-1-1-b9w4d"))
    asked: list[GrantedJob | None] = []

    class Gone(Granted):
        @asynccontextmanager
        async def acquire(
            self, case: CasePlan, earlier: GrantedJob | None = None
        ) -> AsyncIterator[Allocation]:
            asked.append(earlier)
            raise AllocationError("they are gone")
            yield

    opened = make_session(tmp_path, FakeRuntime(), allocator=Gone())
    case = opened.plan.cases[0]
    noted = replace(observed(case), allocation=had).as_dict()
    begun = RoundSoFar(
        RoundKey(case.settings.name, 1), "train", seen=parsed(Observation, noted, "journal.jsonl")
    )
    asyncio.run(asyncio.wait_for(Round(opened, case, 1, begun).run(), timeout=60))
    opened.journal.close()
    assert asked == [had]


def taken_up(opened: Session) -> Round:
    """A round whose controller has died when it trained."""
    case = opened.plan.cases[0]
    seen = replace(observed(case), outcome=None)
    key = RoundKey(case.settings.name, 1)
    return Round(opened, case, 1, RoundSoFar(key, "train", seen, time.time(), Stage.TRAIN))


class Silent(Granted):
    """A scheduler that does not answer."""

    left = False

    @asynccontextmanager
    async def acquire(self, case: CasePlan, earlier: GrantedJob | None = None) -> AsyncIterator[Allocation]:
        try:
            await asyncio.sleep(600)
        finally:
            self.left = True
        yield Allocation(())


@pytest.mark.parametrize("is_stopped", [False, True], ids=["resume", "stop"])
def test_a_signal_lets_a_round_go_that_waits_for_the_hosts_that_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_stopped: bool
) -> None:
    monkeypatch.setattr(round_hosts, "LAST_WAIT_S", 0.1)
    hosts = Silent()
    opened = make_session(tmp_path, FakeRuntime(), allocator=hosts)

    async def scenario() -> None:
        if is_stopped:  # as `run.py stop` has it, which waits for them as long as that may help
            opened.interrupt.ask("`run.py stop` of somebody")
        waiting = asyncio.create_task(taken_up(opened).run())
        await asyncio.wait({waiting}, timeout=1.0)
        assert not waiting.done()
        opened.signalled.ask("SIGINT")
        with pytest.raises(WaitEndedError, match="SIGINT ended the waiting"):
            await waiting

    asyncio.run(asyncio.wait_for(scenario(), 60))
    opened.journal.close()
    assert hosts.left and not result_file(tmp_path).exists()
    assert "round_ended" not in [each["event"] for each in journal(tmp_path)]


def test_a_round_whose_hosts_are_there_at_once_is_ended_in_order_by_a_signal_before(tmp_path: Path) -> None:
    hosts = Granted()
    opened = make_session(tmp_path, FakeRuntime(ends={}), allocator=hosts)
    opened.interrupt.ask("SIGINT")
    opened.signalled.ask("SIGINT")
    result = asyncio.run(asyncio.wait_for(taken_up(opened).run(), 60))
    opened.journal.close()
    assert result.verdict is Verdict.INTERRUPTED and hosts.given_back
