"""The end of a round whose controller died before: what its host may have alone stays there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks import round_end
from run_benchmarks.hosts.base import Host
from run_benchmarks.journal import kept_folders
from run_benchmarks.names import FOLLOWED_EVENTS, nodes_of
from run_benchmarks.results.folder import open_folder
from run_benchmarks.round_end import RoundEnd
from run_benchmarks.round_state import RoundState
from run_benchmarks.stages.watch import Ended, Outcome
from run_benchmarks.transports.base import TransportError
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.one_round import RUN, make_session
from utils.records import FailureClass


@pytest.mark.parametrize("is_taken_up", [True, False])
def test_logs_that_an_earlier_controller_fetched_count_and_those_on_the_host_stay(
    is_taken_up: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two hosts that are lost the logs of the first are here; whether all of them are nobody knows."""

    async def refuse(transport: Any, *arguments: object, **options: object) -> None:
        raise TransportError("no route to it", where=transport.host)

    monkeypatch.setattr(round_end, "collect_folder", refuse)
    session = make_session(tmp_path, FakeRuntime())
    first, second = nodes = nodes_of(session.plan.cases[0], 1)
    (session.log_dir / first.folder).mkdir(parents=True)
    state = RoundState(session.plan.cases[0], 1, "", nodes, is_taken_up=is_taken_up)
    hosts = [Host(node.host, node.host, LocalTransport(node.host)) for node in nodes]
    asyncio.run(RoundEnd(session, state, hosts)._collect())
    session.journal.close()
    kept = {first.folder} if is_taken_up else set()
    assert state.not_collected == ({second.rank} if is_taken_up else {first.rank, second.rank})
    assert session.kept == kept == kept_folders(open_folder(tmp_path / "result" / RUN.name).journal)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_folder_that_is_on_no_machine_any_more_is_missed(rank: int, tmp_path: Path) -> None:
    """As one on a disk that goes with the job, which a node's next user finds empty."""
    session = make_session(tmp_path, FakeRuntime())
    nodes = nodes_of(session.plan.cases[0], 1)
    for node in nodes:
        if node.rank != rank:
            Path(session.paths.node(node)).mkdir(parents=True)
    outcome = Outcome({node.rank: Ended(0, 0.0) for node in nodes}, timed_out=False, out_of_contact={})
    state = RoundState(session.plan.cases[0], 1, "", nodes, is_taken_up=True, outcome=outcome)
    hosts = [Host(node.host, node.host, LocalTransport(node.host)) for node in nodes]
    asyncio.run(RoundEnd(session, state, hosts)._collect())
    session.journal.close()
    assert not state.not_collected, "of which something may still lie there"
    (note,) = state.notes
    assert note.startswith(f"{nodes[rank].host}: its logs are gone: ")
    kind = state.failure and state.failure.failure_class
    assert kind is (FailureClass.LOGS_NOT_COLLECTED if rank == 0 else None)
    assert not state.failure or "copy rank0.out.log" not in state.failure.remedy


@pytest.mark.parametrize("was_followed", [True, False])
def test_a_log_that_was_followed_and_is_gone_is_missed(was_followed: bool, tmp_path: Path) -> None:
    """The round is then judged by what was followed; of what was never there nobody says that it is gone."""
    session = make_session(tmp_path, FakeRuntime())
    nodes = nodes_of(session.plan.cases[0], 1)
    for node in nodes:
        Path(session.paths.node(node)).mkdir(parents=True)
    followed = session.log_dir / nodes[0].folder
    followed.parent.mkdir(parents=True)
    if was_followed:
        (followed.parent / FOLLOWED_EVENTS).write_text("some events\n")
    outcome = Outcome({node.rank: Ended(0, 0.0) for node in nodes}, timed_out=False, out_of_contact={})
    state = RoundState(session.plan.cases[0], 1, "", nodes, outcome=outcome)
    hosts = [Host(node.host, node.host, LocalTransport(node.host)) for node in nodes]
    asyncio.run(RoundEnd(session, state, hosts)._collect())
    session.journal.close()
    kind = state.failure and state.failure.failure_class
    assert kind is (FailureClass.LOGS_NOT_COLLECTED if was_followed else None)
    assert [note.partition(" there is no ")[2].rpartition("/")[2] for note in state.notes] == (
        ["rank0.out.log any more"] if was_followed else []
    )
