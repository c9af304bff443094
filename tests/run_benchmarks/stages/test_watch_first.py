"""The first node of a search ends the wait for it. FAKE hosts and a FAKE runtime; the clock is the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import cast

import pytest

from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages import contact, watch, watch_first
from run_benchmarks.stages.watch import Ended, Outcome
from run_benchmarks.stages.watch_first import WatchFirst, out_of_reach
from run_benchmarks.transports.base import Transport, TransportError
from tests.fakes.clock import HandClock
from tests.fakes.runtime import FakeRuntime
from tests.fakes.transports import PingedHost
from tests.run_benchmarks.builders import make_nodes

LOST = TransportError("contact was lost", where="h")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[HandClock]:
    clock = HandClock()
    for module in (contact, watch):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(watch, "RECONNECT_EVERY_S", 0.0)
    for module in (watch, watch_first):
        monkeypatch.setattr(module, "SETTLE_S", 0.05)
    yield clock


def wait(runtime: FakeRuntime, hosts: Sequence[PingedHost], deadline_s: float = 3600.0) -> Outcome:
    """Watch the units u0, u1, ... on the hosts h0, h1, ..."""
    names = [f"h{rank}" for rank in range(len(hosts))]
    transports = dict(zip(names, cast(Sequence[Transport], hosts), strict=True))
    units = {rank: f"u{rank}" for rank in range(len(hosts))}

    async def scenario() -> Outcome:
        watcher = WatchFirst(cast(Runtime, runtime), transports, units, 20.0, lambda: None)
        outcome = await watcher.run(make_nodes(names), deadline_s)
        assert asyncio.all_tasks() == {asyncio.current_task()}  # nothing goes on behind the result
        return outcome

    return asyncio.run(scenario())


def test_a_worker_that_fails_does_not_end_the_round(clock: HandClock) -> None:
    hosts = [PingedHost(clock) for _ in range(3)]
    outcome = wait(FakeRuntime(ends={"u1": [3], "u2": [0]}), hosts, deadline_s=0.1)
    assert outcome.timed_out and outcome.endings == {}
    assert {rank: cast(Ended, each).code for rank, each in outcome.dispensable.items()} == {1: 3, 2: 0}


def test_a_host_that_is_lost_does_not_fail_a_round_that_ends_well(clock: HandClock) -> None:
    hosts = [PingedHost(clock), PingedHost(clock, [False] * 40, each_takes=1.0)]
    outcome = wait(FakeRuntime(ends={"u0": [LOST] * 45 + [0], "u1": [LOST]}), hosts)
    assert outcome.all_ended_well
    assert list(outcome.endings) == [0] and out_of_reach(outcome) == [1]


def test_the_controllers_failure_ends_it_whatever_the_workers_do(clock: HandClock) -> None:
    outcome = wait(FakeRuntime(ends={"u0": [5]}), [PingedHost(clock), PingedHost(clock)])
    assert outcome.endings == {0: Ended(5, clock.now)}
    assert not outcome.all_ended_well and outcome.dispensable == {}
