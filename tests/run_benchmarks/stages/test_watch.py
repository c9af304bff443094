"""What ends a round's wait and what does not. FAKE hosts and a FAKE runtime; the clock is the test's own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest

from run_benchmarks.names import Node
from run_benchmarks.runtimes.base import EngineError, Runtime, UnitGoneError
from run_benchmarks.stages import contact, watch
from run_benchmarks.stages.watch import Ended, Lost, Outcome, Watch
from run_benchmarks.transports.base import (
    CommandError,
    Completed,
    HostKeyError,
    Transport,
    TransportError,
)
from tests.fakes.clock import HandClock
from tests.fakes.runtime import FakeRuntime
from tests.fakes.transports import PingedHost
from tests.run_benchmarks.builders import make_nodes
from utils.records import FailureClass

PATIENCE = 20.0
ENGINE_DOWN = EngineError(Completed("h0", ("docker", "wait"), 1, "", "unexpected EOF"))
LOST = TransportError("contact was lost", where="h")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[HandClock]:
    clock = HandClock()
    for module in (watch, contact):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(watch, "RECONNECT_EVERY_S", 0.0)
    monkeypatch.setattr(watch, "SETTLE_S", 0.05)
    yield clock


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of all that is said of a host."""
    said: list[str] = []
    monkeypatch.setattr(watch, "log_of_host", lambda level, host, text: said.append(level))
    return said


def ending(**ends: Sequence[int | Exception]) -> FakeRuntime:
    """A runtime where a unit's waits end as listed."""
    return FakeRuntime(ends=ends)


class HeldRuntime(FakeRuntime):
    """Each wait ends after `held_s`; of an engine that failed the next does not end while it is looked at."""

    def __init__(self, clock: HandClock, held_s: float = 0.0, **options: Any) -> None:
        super().__init__(**options)
        self.clock, self.held_s = clock, held_s
        self.has_failed = False

    async def wait(self, transport: Transport, name: str) -> int:
        self.clock.now += self.held_s
        if self.has_failed:
            self.has_failed = False
            await asyncio.Event().wait()
        try:
            return await super().wait(transport, name)
        except EngineError:
            self.has_failed = True
            raise


def wait(
    runtime: FakeRuntime,
    hosts: Sequence[PingedHost],
    *,
    progressed_at: Callable[[], float | None] = lambda: None,
    deadline_s: float = 3600.0,
    note_contact: Callable[[Node, bool], None] = lambda node, there: None,
) -> Outcome:
    """Watch the units u0, u1, ... on the hosts h0, h1, ..."""
    names = [f"h{rank}" for rank in range(len(hosts))]
    transports = dict(zip(names, cast(Sequence[Transport], hosts), strict=True))
    units = {rank: f"u{rank}" for rank in range(len(hosts))}

    async def scenario() -> Outcome:
        watcher = Watch(cast(Runtime, runtime), transports, units, PATIENCE, progressed_at, note_contact)
        outcome = await asyncio.wait_for(watcher.run(make_nodes(names), deadline_s), timeout=120)
        assert asyncio.all_tasks() == {asyncio.current_task()}  # nothing goes on behind the result
        return outcome

    return asyncio.run(scenario())


def test_all_ended_well(clock: HandClock) -> None:
    outcome = wait(ending(u0=[0], u1=[0], u2=[0]), [PingedHost(clock) for _ in range(3)])
    assert outcome == Outcome({rank: Ended(0, clock.now) for rank in range(3)}, False, {})
    assert outcome.all_ended_well


def test_the_first_failure_ends_the_wait_for_a_peer_that_never_ends(clock: HandClock) -> None:
    outcome = wait(ending(u1=[3]), [PingedHost(clock), PingedHost(clock)])
    assert outcome == Outcome({1: Ended(3, clock.now)}, False, {})
    assert not outcome.all_ended_well


def test_a_good_end_does_not_end_the_wait_for_the_others(clock: HandClock) -> None:
    outcome = wait(ending(u0=[0]), [PingedHost(clock), PingedHost(clock)], deadline_s=0.1)
    assert outcome.timed_out
    assert list(outcome.endings) == [0]


def test_peers_have_a_moment_to_end_too(clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of two failed first is judged by their logs, so both endings are wanted."""
    monkeypatch.setattr(watch, "SETTLE_S", 3600.0)  # it ends early: there is nobody left to wait for
    outcome = wait(ending(u0=[LOST, 1], u1=[137]), [PingedHost(clock), PingedHost(clock)])
    assert {rank: cast(Ended, ending).code for rank, ending in outcome.endings.items()} == {0: 1, 1: 137}


def test_a_peer_that_does_not_answer_after_a_failure_is_out_of_contact(clock: HandClock) -> None:
    outcome = wait(ending(u0=[1]), [PingedHost(clock), PingedHost(clock, [False]), PingedHost(clock)])
    assert list(outcome.endings) == [0]
    assert list(outcome.out_of_contact) == [1]


def test_a_lost_connection_that_comes_back_is_no_end(clock: HandClock) -> None:
    runtime = ending(u0=[0], u1=[LOST, LOST, 0])
    host = PingedHost(clock, [False, True, True], each_takes=1.0)
    outcome = wait(runtime, [PingedHost(clock), host])
    assert outcome.all_ended_well
    assert runtime.waits.count("u1") == 3
    assert host.pings == 3


def test_who_shows_the_run_is_told_of_contact_that_is_lost_and_back(clock: HandClock) -> None:
    seen: list[tuple[str, bool]] = []
    hosts = [PingedHost(clock), PingedHost(clock, [False, True])]
    wait(
        ending(u0=[0], u1=[LOST, 0]), hosts, note_contact=lambda node, there: seen.append((node.host, there))
    )
    assert seen == [("h1", False), ("h1", True)]


def test_an_exit_code_that_came_while_contact_was_lost_counts(clock: HandClock) -> None:
    outcome = wait(ending(u0=[0], u1=[LOST, 9]), [PingedHost(clock), PingedHost(clock, [False, True])])
    assert outcome.endings[1] == Ended(9, clock.now)


def test_a_host_that_stays_away_is_lost_after_its_patience(clock: HandClock) -> None:
    begun = clock.now
    outcome = wait(ending(u1=[LOST]), [PingedHost(clock), PingedHost(clock, [False], each_takes=1.0)])
    assert list(outcome.endings) == [1]
    assert isinstance(outcome.endings[1], Lost)
    silent = clock.now - begun + watch.NOTICED_AFTER_S
    assert PATIENCE < silent <= PATIENCE + 1.0
    assert not outcome.timed_out


def test_what_decided_that_a_host_is_lost_is_told_with_how_it_was_last_seen(clock: HandClock) -> None:
    host = PingedHost(clock, [False], each_takes=1.0)
    lost = wait(ending(u1=[LOST]), [PingedHost(clock), host]).endings[1]
    assert isinstance(lost, Lost) and not lost.answered
    decided, seen = lost.message.splitlines()
    assert re.fullmatch(
        r"no answer since 20\S+ \d\d:\d\d:\d\d: longer than HOST_LOST_AFTER = 20 s in cluster_conf.py",
        decided,
    )
    assert seen == "contact was lost; since then: takes TCP and hangs"
    assert lost.remedy == "see its console"


def test_a_host_that_is_there_at_the_last_moment_is_not_lost(clock: HandClock) -> None:
    """Its commands took too long until its time was over."""
    pings = [False] * (int(PATIENCE - watch.NOTICED_AFTER_S) + 1)
    host = PingedHost(clock, [*pings, True], each_takes=1.0)
    assert wait(ending(u0=[0], u1=[LOST, 0]), [PingedHost(clock), host]).all_ended_well


def test_a_host_that_lets_in_and_runs_nothing_for_its_patience_is_lost(clock: HandClock) -> None:
    """Its disk hangs, say: log-ins work, and `true` does not end."""
    host = PingedHost(clock, [False], each_takes=1.0, lets_in=True)
    lost = wait(ending(u0=[LOST]), [host, PingedHost(clock)]).endings[0]
    assert isinstance(lost, Lost) and not lost.answered
    decided, seen = lost.message.splitlines()
    assert "longer than HOST_LOST_AFTER = 20 s" in decided
    assert "since then: it lets us in, and runs no command" in seen
    assert "a disk or a network file system hangs" in lost.remedy


def test_a_host_that_is_only_slow_is_not_lost(clock: HandClock) -> None:
    """`true` is done as soon as it has longer than a ping has."""

    class SlowHost(PingedHost):
        async def run(self, argv: Sequence[str], **options: Any) -> Completed:
            self.answers = [options["timeout"] >= contact.REACH_TIMEOUT_S]
            return await super().run(argv, **options)

    host = SlowHost(clock, each_takes=5.0, lets_in=True)
    assert wait(ending(u0=[LOST, LOST, 0], u1=[0]), [host, PingedHost(clock)]).all_ended_well


@pytest.mark.parametrize("error", [LOST, ENGINE_DOWN], ids=["contact", "engine"])
def test_a_host_that_loses_each_wait_is_warned_of_once(
    error: Exception, clock: HandClock, levels: list[str]
) -> None:
    runtime = HeldRuntime(clock, ends={"u0": [*[error] * 3, 0]})
    assert wait(runtime, [PingedHost(clock)]).all_ended_well
    assert levels == ["WARNING", "INFO", *["DEBUG"] * 4]


def test_one_whose_wait_has_held_is_warned_of_anew(clock: HandClock, levels: list[str]) -> None:
    runtime = HeldRuntime(clock, held_s=watch.HELD_S, ends={"u0": [LOST, LOST, LOST, 0]})
    assert wait(runtime, [PingedHost(clock)]).all_ended_well
    assert levels == ["WARNING", "INFO"] * 3


def test_a_task_alone_is_waited_for_longer_and_that_is_told(clock: HandClock) -> None:
    lost = wait(ending(u0=[LOST]), [PingedHost(clock, [False], each_takes=1.0)]).endings[0]
    assert isinstance(lost, Lost)
    assert "longer than 600 s, for which a task without peers is waited for\n" in lost.message


def test_how_a_peer_is_out_of_reach_is_told(clock: HandClock) -> None:
    outcome = wait(ending(u0=[1]), [PingedHost(clock), PingedHost(clock, [False])])
    assert outcome.out_of_contact == {1: f"{watch.PEERS_FAILED}\ntakes TCP and hangs"}


def test_progress_of_the_others_is_a_sign_of_life(clock: HandClock) -> None:
    """Where rank 0 finishes steps every rank lives, whatever has become of the way to its host."""
    last_step = clock.now + 300.0
    host = PingedHost(clock, [False], each_takes=10.0)
    outcome = wait(
        ending(u1=[LOST]),
        [PingedHost(clock), host],
        progressed_at=lambda: min(clock.now, last_step),
    )
    assert isinstance(outcome.endings[1], Lost)
    assert clock.now > last_step + PATIENCE


def test_progress_says_nothing_of_the_node_that_it_is_read_from(clock: HandClock) -> None:
    begun = clock.now
    outcome = wait(
        ending(u0=[LOST]),
        [PingedHost(clock, [False], each_takes=1.0), PingedHost(clock)],
        progressed_at=lambda: clock.now,
    )
    assert isinstance(outcome.endings[0], Lost)
    assert clock.now - begun <= PATIENCE


def test_a_task_that_is_alone_is_waited_for_longer(clock: HandClock) -> None:
    """No peer burns chip time meanwhile."""
    begun = clock.now
    outcome = wait(ending(u0=[LOST]), [PingedHost(clock, [False], each_takes=30.0)])
    assert isinstance(outcome.endings[0], Lost)
    assert clock.now - begun > contact.ALONE_PATIENCE_S - watch.NOTICED_AFTER_S - 30.0


def test_the_deadline(clock: HandClock) -> None:
    outcome = wait(ending(), [PingedHost(clock), PingedHost(clock)], deadline_s=0.1)
    assert outcome == Outcome({}, True, {})
    assert not outcome.all_ended_well


def test_a_unit_that_is_gone_is_lost_at_once(clock: HandClock) -> None:
    gone = CommandError(Completed("h1", ("docker", "wait", "u1"), 1, "", "No such container: u1"))
    host = PingedHost(clock)
    outcome = wait(ending(u1=[gone]), [PingedHost(clock), host])
    assert outcome.endings[1] == Lost(gone.message, True, clock.now)
    assert host.pings == 0


def test_cancelling_the_watch_ends_all_waits(clock: HandClock) -> None:
    async def scenario() -> None:
        transports = {"h0": cast(Transport, PingedHost(clock)), "h1": cast(Transport, PingedHost(clock))}
        runtime = ending()
        watcher = Watch(cast(Runtime, runtime), transports, {0: "u0", 1: "u1"}, PATIENCE, lambda: None)
        running = asyncio.create_task(watcher.run(make_nodes(("h0", "h1")), 3600))
        while len(runtime.waits) < 2:
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def test_an_engine_that_is_started_anew_and_kept_its_task_is_no_end(
    clock: HandClock,
) -> None:
    outcome = wait(ending(u0=[ENGINE_DOWN, 0]), [PingedHost(clock)])
    assert outcome.all_ended_well


def test_an_engine_that_ended_its_task_is_the_cause(clock: HandClock) -> None:
    outcome = wait(ending(u0=[ENGINE_DOWN, 137]), [PingedHost(clock)])
    (lost,) = outcome.endings.values()
    assert isinstance(lost, Lost) and (lost.answered, lost.cause) == (True, FailureClass.ENGINE_FAILED)
    assert "it ended the task, with exit code 137" in lost.message
    assert lost.remedy == "ask h0 of engine_failed", "the runtime's own advice"


def test_of_a_task_that_is_gone_the_runtime_says_where_to_look(clock: HandClock) -> None:
    gone = UnitGoneError(Completed("h0", ("docker", "wait"), 1, "", "No such container: u0"), "a remedy")
    (lost,) = wait(ending(u0=[gone]), [PingedHost(clock)]).endings.values()
    assert isinstance(lost, Lost) and lost.remedy == "ask h0 of task_removed"


def test_of_a_task_that_was_removed_in_its_last_moment_too(clock: HandClock) -> None:
    runtime = ending(u0=[137])
    runtime.cause = FailureClass.TASK_REMOVED
    (ended,) = wait(runtime, [PingedHost(clock)]).endings.values()
    assert isinstance(ended, Ended) and ended.remedy == "ask h of task_removed"


def test_an_engine_that_is_still_away_when_a_peer_has_failed_is_in_the_outcome(
    clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "ENGINE_PAUSES_S", (60.0,))
    runtime = ending(u0=[LOST, 1], u1=[ENGINE_DOWN])
    runtime.error = ENGINE_DOWN
    outcome = wait(runtime, [PingedHost(clock), PingedHost(clock)])
    lost = outcome.endings[1]
    assert isinstance(lost, Lost) and lost.cause is FailureClass.ENGINE_FAILED
    assert isinstance(outcome.endings[0], Ended)


def test_contact_is_not_sought_where_only_the_user_can_mend_it(clock: HandClock) -> None:
    host = PingedHost(clock)
    outcome = wait(ending(u0=[HostKeyError("its key has changed", where="h0")]), [host])
    (lost,) = outcome.endings.values()
    assert isinstance(lost, Lost) and lost.cause is FailureClass.HOST_KEY_NOT_TRUSTED
    assert host.pings == 0
