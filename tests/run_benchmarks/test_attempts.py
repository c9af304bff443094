"""A round that failed by the machines' fault is run again: with a FAKE runtime; hosts, files and commands are real."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks import attempts, round, round_end, runner
from run_benchmarks.attempts import attempts_in
from run_benchmarks.hosts.base import Host
from run_benchmarks.journal import kept_folders
from run_benchmarks.leaving import leave
from run_benchmarks.names import Node, nodes_of
from run_benchmarks.reading import parsed
from run_benchmarks.results.folder import RoundKey, open_folder
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.resumption import _round_so_far
from run_benchmarks.runtimes.base import EngineError
from run_benchmarks.session import Session
from run_benchmarks.stages.collect_listing import LeftOut
from run_benchmarks.transports.base import CommandError, Completed, TransportError
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.one_round import RUN, make_session, result_file
from utils.records import FailureClass, Fault, Verdict

FIRST, SECOND, SPARE, OTHER = (f"192.0.2.{number}" for number in range(1, 5))
SPARES = f'SPARE_HOSTS = ["{SPARE}", "{OTHER}"]\n'


class Broken(FakeRuntime):
    """Starts no task on the hosts of `broken`, each with its own error."""

    def __init__(self, broken: dict[str, Exception]) -> None:
        super().__init__()
        self.broken = broken

    async def start(self, transport: Any, unit: Any) -> None:
        if transport.host in self.broken and "task" in unit.name:
            raise self.broken[transport.host]
        await super().start(transport, unit)


def lost(host: str) -> TransportError:
    return TransportError("no route to it", where=host)


def run(session: Session) -> RoundResult:
    """The result that counts."""

    async def scenario() -> RoundResult:
        try:
            return await runner._run_round(session, session.plan.cases[0], 1, None)
        finally:
            session.journal.close()

    return asyncio.run(asyncio.wait_for(scenario(), timeout=60))


def events(tmp_path: Path) -> list[str]:
    return [record["event"] for record in records(tmp_path) if record["event"] != "stage"]


def records(tmp_path: Path, event: str = "") -> list[dict[str, Any]]:
    """The journal's, of one kind or all."""
    lines = (tmp_path / "result" / RUN.name / "journal.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if event in ("", record["event"])]


def test_a_spare_takes_the_place_of_a_lost_host(tmp_path: Path, log_lines: LogLines) -> None:
    session = make_session(tmp_path, Broken({SECOND: lost(SECOND)}), cluster_conf=SPARES)
    assert session.plan.cases[0].hosts == (FIRST, SECOND)
    result = run(session)
    assert result.hosts == (FIRST, SPARE)
    assert result.failure is not None and result.failure.failure_class is FailureClass.NO_RESULT
    (attempt,) = result.attempts
    assert (attempt.folder, attempt.verdict, attempt.host) == ("round1.attempt1", Verdict.UNREACHABLE, SECOND)
    assert attempt.failure_class is FailureClass.HOST_UNREACHABLE and attempt.hosts == (FIRST, SECOND)
    note = f"round1.attempt1 does not count: UNREACHABLE (host_unreachable on {SECOND})"
    assert note in result.notes
    assert f"run again with {SPARE} in the place of {SECOND}; the first: round1.attempt1" in log_lines.text
    whole = result_file(tmp_path).parent
    assert attempts_in(whole) == result.attempts
    assert (
        json.loads((whole.with_name("round1.attempt1") / "result.json").read_text())["verdict"]
        == "UNREACHABLE"
    )
    assert [name for name in events(tmp_path) if "started" != name != "acquired"] == [
        "round_started",
        "attempt_ended",
        "replaced",
        "round_started",
        "kept",  # what the spare has of that attempt: nothing
        "collected",
        "round_ended",
    ]
    # a later reader sees one round, and judges it as before
    folder = open_folder(tmp_path / "result" / RUN.name)
    assert [key.number for key in folder.rounds] == [1]
    assert attempts.on_present_hosts(session, session.plan.cases[0]).hosts == (FIRST, SPARE)


def test_a_spare_takes_a_place_in_its_own_vendors_cases_alone(tmp_path: Path) -> None:
    """A host may be of two vendors, and only the one's chips be in the spare."""
    groups = f'HOSTS = {{"acme": ["{FIRST}", "{SECOND}"]}}\nSPARE_HOSTS = {{"acme": ["{SPARE}"]}}\n'
    session = make_session(tmp_path, Broken({SECOND: lost(SECOND)}), cluster_conf=groups)
    session.plan.cluster.groups["twin"] = (FIRST, SECOND)
    session.plan.cluster.spare_groups["twin"] = (OTHER,)
    own = session.plan.cases[0]
    others = replace(own, settings=replace(own.settings, vendor="twin"))
    assert run(session).hosts == (FIRST, SPARE)
    noted = {(entry["group"], entry["host"]): entry["spare"] for entry in records(tmp_path, "replaced")}
    assert noted == {("acme", SECOND): SPARE}
    for replaced in (noted, noted | {("twin", SECOND): SPARE}):  # the other is no spare of its
        session.replaced.clear()
        attempts.restore_spares(session, replaced)
        assert attempts.on_present_hosts(session, own).hosts == (FIRST, SPARE)
        assert attempts.on_present_hosts(session, others).hosts == (FIRST, SECOND)


def test_a_spare_in_a_place_that_this_case_has_not_is_taken(tmp_path: Path) -> None:
    """It stood in two places of a larger case after it, which ran two nodes on one machine."""
    session = make_session(tmp_path, Broken({SECOND: lost(SECOND)}), cluster_conf=SPARES)
    session.replaced["", "192.0.2.9"] = SPARE
    assert run(session).hosts == (FIRST, OTHER)


def test_nothing_is_made_before_all_hosts_have_forgotten_the_earlier_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both hosts have one work folder, as by NFS: what one makes is a part of the run that the other forgets."""
    forget = round.forget_attempt

    async def slow_on_one(session: Session, host: Host, node: Node) -> None:
        await asyncio.sleep(1.0 * node.rank)
        await forget(session, host, node)

    monkeypatch.setattr(round, "forget_attempt", slow_on_one)
    runtime = Broken({FIRST: lost(FIRST)})
    started: list[bool] = []

    async def start(transport: Any, unit: Any) -> None:
        started.extend(Path(mount.host).is_dir() for mount in unit.mounts if not mount.read_only)
        await Broken.start(runtime, transport, unit)

    monkeypatch.setattr(runtime, "start", start)
    run(make_session(tmp_path, runtime))
    assert len(started) == 8 and all(started), "two units on two hosts, twice, each with its folder"


def test_without_a_spare_the_round_runs_on_the_same_hosts_as_often_as_it_may(tmp_path: Path) -> None:
    runtime = Broken({SECOND: lost(SECOND)})
    result = run(make_session(tmp_path, runtime, test_conf="RETRIES = 2\n"))
    assert (result.verdict, result.hosts) == (Verdict.UNREACHABLE, (FIRST, SECOND))
    assert [attempt.folder for attempt in result.attempts] == ["round1.attempt1", "round1.attempt2"]


def test_logs_that_were_out_of_reach_are_fetched_before_they_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(transport: Any, work: str, folder: str, *arguments: object, **options: object) -> None:
        (Path(work) / folder / "rank.out.log").write_text("its last words\n")
        raise lost(transport.host)

    monkeypatch.setattr(round_end, "collect_folder", refuse)
    result = run(make_session(tmp_path, Broken({SECOND: lost(SECOND)})))
    first = result_file(tmp_path).parent.with_name(result.attempts[0].folder)
    assert (first / f"{SECOND}_noderank1" / "rank.out.log").read_text() == "its last words\n"


def test_what_could_not_be_collected_stays_where_the_attempt_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A core dump that was too large to fetch; of the second attempt all comes home, and none of it stays."""
    dumped: list[Path] = []

    async def collect(
        transport: Any, work: str, folder: str, target: Path, *_: object, **options: object
    ) -> tuple[LeftOut, ...]:
        target.mkdir(parents=True, exist_ok=True)
        if transport.host != FIRST or dumped:
            return ()
        dumped.append(Path(work, folder, "core.1"))
        dumped[0].write_text("a large one")
        return (LeftOut("core.1", "too large"),)

    monkeypatch.setattr(round_end, "collect_folder", collect)
    session = make_session(tmp_path, Broken({SECOND: lost(SECOND)}))
    result = run(session)
    first = result_file(tmp_path).parent.with_name(result.attempts[0].folder)
    (earlier,) = (path.parent for path in dumped)
    aside = earlier.parent.with_name(first.name) / earlier.name
    assert (aside / "core.1").read_text() == "a large one"
    notes = json.loads((first / "result.json").read_text())["notes"]
    assert any(f"it still lies in {aside}" in note for note in notes) and str(earlier) not in str(notes)
    assert session.kept == {f"{result.case}/{first.name}/{earlier.name}"}
    asyncio.run(leave(session, session.allocator.standing))
    assert (aside / "core.1").exists() and not earlier.exists()
    assert kept_folders(open_folder(tmp_path / "result" / RUN.name).journal) == session.kept


def test_late_logs_whose_controller_dies_before_it_says_what_was_left_out_stay_on_their_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        """As the end of a process: nothing of the controller is done after it."""

    async def die(transport: Any, work: str, folder: str, target: Path, *_: object) -> None:
        target.mkdir()
        raise Died

    session = make_session(tmp_path, FakeRuntime())
    node, transport = nodes_of(session.plan.cases[0], 1)[0], LocalTransport(FIRST)
    there = Path(session.paths.node(node))
    (session.log_dir / node.folder).parent.with_name("round1.attempt1").mkdir(parents=True)
    there.mkdir(parents=True)
    (there / "core.1").write_text("a large one")
    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(attempts, "collect_folder", die)
        asyncio.run(attempts.bring_late_logs(session, transport, node))

    def in_journal() -> frozenset[str]:
        return kept_folders(open_folder(tmp_path / "result" / RUN.name).journal)

    later = replace(session, kept=set(in_journal()))
    asyncio.run(attempts.bring_late_logs(later, transport, node))
    aside = there.parent.with_name("round1.attempt1") / there.name
    assert (aside / "core.1").read_text() == "a large one" and not there.exists()
    assert later.kept == in_journal() == {f"{node.case.settings.name}/round1.attempt1/{there.name}"}


def test_an_engine_that_fails_is_asked_again_before_any_spare(tmp_path: Path) -> None:
    down = EngineError(Completed(SECOND, ("docker", "run"), 1, "", "Cannot connect to the Docker daemon"))
    result = run(make_session(tmp_path, Broken({SECOND: down}), cluster_conf=SPARES))
    assert result.hosts == (FIRST, SECOND) and len(result.attempts) == 1
    assert result.failure is not None and result.failure.failure_class is FailureClass.ENGINE_FAILED


@pytest.mark.parametrize(
    ("error", "conf"),
    [
        (CommandError(Completed(SECOND, ("docker", "run"), 125, "", "no such device")), ""),
        (lost(SECOND), "RETRIES = 0\n"),
    ],
)
def test_what_another_attempt_would_not_mend_is_final(error: Exception, conf: str, tmp_path: Path) -> None:
    result = run(make_session(tmp_path, Broken({SECOND: error}), cluster_conf=SPARES, test_conf=conf))
    assert result.failure is not None and not result.attempts
    assert not result_file(tmp_path).parent.with_name("round1.attempt1").exists()


def test_an_interrupted_run_tries_nothing_again(tmp_path: Path) -> None:
    session = make_session(tmp_path, Broken({SECOND: lost(SECOND)}), cluster_conf=SPARES)

    async def scenario() -> RoundResult:
        session.interrupt.set()
        return await runner._run_round(session, session.plan.cases[0], 1, None)

    result = asyncio.run(asyncio.wait_for(scenario(), timeout=60))
    assert (result.verdict, result.attempts) == (Verdict.INTERRUPTED, ())


def test_files_of_an_attempt_are_named_where_they_lie(tmp_path: Path) -> None:
    session = make_session(tmp_path, Broken({SECOND: lost(SECOND)}))
    result = run(session)
    assert result.failure is not None
    here = result_file(tmp_path).parent
    content = json.loads((here / "result.json").read_text())
    content["failure"]["file"] = f"{result.case}/round1/{SECOND}_noderank1/rank1.out.log"
    moved = attempts.set_aside(session, parsed(RoundResult, content, "result.json"))
    assert moved.name == "round1.attempt2"
    file = json.loads((moved / "result.json").read_text())["failure"]["file"]
    assert file == f"{result.case}/round1.attempt2/{SECOND}_noderank1/rank1.out.log"


@pytest.mark.parametrize(
    ("noted", "hosts"),
    [
        ({SECOND: SPARE}, (FIRST, SPARE)),
        ({SECOND: SPARE, SPARE: OTHER}, (FIRST, OTHER)),
        ({SECOND: SPARE, SPARE: SECOND}, (FIRST, SPARE)),
        ({FIRST: SPARE, SECOND: SPARE}, (SPARE, SECOND)),
        ({SPARE: SPARE, SECOND: OTHER, OTHER: SPARE, SPARE + "0": OTHER}, (FIRST, SPARE)),
        ({SECOND: "192.0.2.99"}, (FIRST, SECOND)),
        ({SECOND: FIRST}, (FIRST, SECOND)),
    ],
)
def test_a_journal_puts_no_host_where_no_controller_would(
    noted: dict[str, str], hosts: tuple[str, ...], tmp_path: Path
) -> None:
    session = make_session(tmp_path, FakeRuntime(), cluster_conf=SPARES)
    attempts.restore_spares(session, {("", host): spare for host, spare in noted.items()})
    assert attempts.on_present_hosts(session, session.plan.cases[0]).hosts == hosts


def test_a_controller_that_dies_between_two_attempts_leaves_a_round_to_be_begun_anew(tmp_path: Path) -> None:
    """And not one to be entered where the attempt that does not count had come to."""
    result = run(make_session(tmp_path, Broken({SECOND: lost(SECOND)}), cluster_conf=SPARES))
    folder = open_folder(tmp_path / "result" / RUN.name)
    place = next(n for n, entry in enumerate(folder.journal) if entry["event"] == "attempt_ended")
    folder.journal = folder.journal[: place + 1]
    key, entries = RoundKey(result.case, result.round), folder.journal
    of_round = [each for each in entries if (each.get("case"), each.get("round")) == (key.case, key.number)]
    assert _round_so_far(key, of_round, folder.path).seen is None


def test_an_attempt_that_nobody_can_read_counts_all_the_same(tmp_path: Path, log_lines: LogLines) -> None:
    """It was run again without end: of attempts that cannot be read there were never as many as may be."""

    class Torn(Broken):
        async def start(self, transport: Any, unit: Any) -> None:
            for result in round_folder.parent.glob("round1.attempt*/result.json"):
                result.write_text('{"verdict": "FAILED"')
            await super().start(transport, unit)

    round_folder = result_file(tmp_path).parent
    result = run(make_session(tmp_path, Torn({SECOND: lost(SECOND)}), test_conf="RETRIES = 3\n"))
    names = sorted(path.name for path in round_folder.parent.iterdir())
    assert names == ["round1", "round1.attempt1", "round1.attempt2", "round1.attempt3"]
    assert [attempt.folder for attempt in result.attempts] == ["round1.attempt3"]
    told = [line for line in log_lines.text.splitlines() if "cannot be read" in line]
    assert len(told) == 2 and "2 earlier attempts cannot be read" in told[-1]


def test_what_an_attempt_that_nobody_can_read_left_on_its_hosts_is_removed(tmp_path: Path) -> None:
    """Else the next one fails, as its folder is there."""
    session = make_session(tmp_path, FakeRuntime())
    folder, node = result_file(tmp_path).parent, nodes_of(session.plan.cases[0], 1)[0]
    folder.with_name("round1.attempt1").mkdir(parents=True)
    Path(session.paths.node(node)).mkdir(parents=True)
    result = run(session)
    assert result.failure is not None and result.failure.failure_class is FailureClass.NO_RESULT


def test_an_attempt_whose_result_cannot_be_written_is_the_last(tmp_path: Path) -> None:
    """As on a full disk: nobody would know what the next one came to."""

    class InTheWay(Broken):
        async def start(self, transport: Any, unit: Any) -> None:
            result_file(tmp_path).mkdir(parents=True, exist_ok=True)
            await super().start(transport, unit)

    result = run(make_session(tmp_path, InTheWay({SECOND: lost(SECOND)}), cluster_conf=SPARES))
    assert (result.verdict, result.hosts) == (Verdict.UNREACHABLE, (FIRST, SECOND))
    assert "attempt_ended" not in events(tmp_path)
    assert [path.name for path in result_file(tmp_path).parents[1].iterdir()] == ["round1"]


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (FailureClass.HOST_UNREACHABLE, Fault.HOST),
        (FailureClass.DEVICE_LOST, Fault.HOST),
        (FailureClass.ENGINE_FAILED, Fault.MACHINE),
        (FailureClass.IMAGE_NOT_DISTRIBUTED, Fault.MACHINE),
        *(
            (kind, None)
            for kind in (
                FailureClass.RANK_FAILED,
                FailureClass.DEVICE_OUT_OF_MEMORY,
                FailureClass.DIVERGED,
                FailureClass.AUTHENTICATION_FAILED,
                FailureClass.HOST_KEY_NOT_TRUSTED,
                FailureClass.INTERRUPTED,
                FailureClass.DEADLINE,
                FailureClass.INCONSISTENT_RESULT,
            )
        ),
    ],
)
def test_whose_fault(kind: FailureClass, fault: Fault | None) -> None:
    assert kind.fault is fault
