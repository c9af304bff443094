"""When a round's wait ends because nothing goes on. FAKE hosts and a FAKE runtime; the clock is the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

import pytest

from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages import contact, hang, watch
from run_benchmarks.stages.hang import CATCH_UP_S, HangWatch, Unseen
from run_benchmarks.stages.watch import Lost, Outcome, Watch
from run_benchmarks.transports.base import Transport, TransportError
from tests.fakes.clock import HandClock
from tests.fakes.runtime import FakeRuntime
from tests.fakes.transports import PingedHost
from tests.run_benchmarks.builders import make_nodes

LIMIT = 300.0
UNSEEN = {1: Unseen("Container u1 is paused", "see who paused it")}


class Training:
    """What rank 0 has reported, as the controller sees it; while it is looked at the clock goes on by a minute."""

    def __init__(self, clock: HandClock, wakes: bool = False) -> None:
        self.clock, self.wakes = clock, wakes
        self.reported: float | None = clock.now
        self.limit: float | None = LIMIT
        self.looks = 0

    async def look(self) -> Mapping[int, Unseen]:
        self.looks += 1
        self.clock.now += 60
        if self.wakes:
            self.reported = self.clock.now
        return UNSEEN

    @property
    def hangs(self) -> HangWatch:
        return HangWatch(lambda: self.reported, lambda: self.limit, self.look)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[HandClock]:
    clock = HandClock()
    for module in (watch, hang, contact):
        monkeypatch.setattr(module, "time", clock)
    for name, value in {"LOOK_EVERY_S": 0.01, "SETTLE_S": 0.05, "RECONNECT_EVERY_S": 0.0}.items():
        monkeypatch.setattr(watch, name, value)
    monkeypatch.setattr(hang, "LONGEST_DELAY_S", 10**4)  # the clock goes on by more than is planned
    yield clock


@pytest.fixture
def training(clock: HandClock) -> Training:
    return Training(clock)


def wait(
    clock: HandClock,
    training: Training,
    hosts: Sequence[PingedHost] = (),
    until: Callable[[], bool] = lambda: False,
    ticks: int = 2000,
    **ends: Sequence[int | Exception],
) -> Outcome | None:
    """Watch two units while the clock goes on by ten seconds at a time; None where it still waits at last."""
    hosts = hosts or [PingedHost(clock), PingedHost(clock)]
    transports = dict(zip(("h0", "h1"), cast(Sequence[Transport], hosts), strict=True))
    runtime = FakeRuntime(ends=ends)

    async def scenario() -> Outcome | None:
        watcher = Watch(
            cast(Runtime, runtime), transports, {0: "u0", 1: "u1"}, 20.0, lambda: None, hangs=training.hangs
        )
        waiting = asyncio.create_task(watcher.run(make_nodes(("h0", "h1")), 10**6))
        for _ in range(ticks):
            done, _ = await asyncio.wait([waiting], timeout=0.03)
            if done or until():
                break
            clock.now += 10
        if not waiting.done():
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            return None
        return waiting.result()

    return asyncio.run(asyncio.wait_for(scenario(), timeout=60))


def test_a_silence_that_is_too_long_ends_the_wait_once_it_was_looked_at(
    clock: HandClock, training: Training
) -> None:
    outcome = wait(clock, training)
    assert outcome is not None
    assert outcome.hung_s is not None and outcome.hung_s > LIMIT
    assert outcome.hang_limit == training.hangs.limit_text()
    assert (outcome.endings, outcome.timed_out, outcome.out_of_contact) == ({}, False, {})
    assert outcome.unseen == UNSEEN
    assert not outcome.all_ended_well
    assert training.looks == 1


def test_a_training_that_goes_on_while_it_is_looked_at_is_no_hang(clock: HandClock) -> None:
    training = Training(clock, wakes=True)
    assert wait(clock, training, until=lambda: training.looks == 1) is None
    assert training.looks == 1


@pytest.mark.parametrize(("reported", "limit"), [(None, 5.0), (0.0, None)], ids=["no events", "no limit"])
def test_who_reports_nothing_or_has_no_limit_is_never_hung(
    reported: float | None, limit: float | None, clock: HandClock, training: Training
) -> None:
    training.reported, training.limit = reported, limit
    assert wait(clock, training, ticks=40) is None
    assert training.looks == 0


def test_nothing_is_hung_while_contact_with_node_0_is_lost(clock: HandClock, training: Training) -> None:
    """What it reports is not heard, and its steps may go on."""
    lost = TransportError("contact was lost", where="h0")
    hosts = [PingedHost(clock, [False]), PingedHost(clock)]
    hangs = training.hangs
    hangs.note_contact(False)
    clock.now += 10 * LIMIT
    assert hangs.silence_s() is None
    hangs.note_contact(True)
    clock.now += LIMIT + CATCH_UP_S
    assert hangs.silence_s() is None  # what was written meanwhile is read first
    clock.now += 1
    assert hangs.silence_s() is not None
    outcome = wait(clock, training, hosts, u0=[lost])
    assert outcome is not None and outcome.hung_s is None  # it is lost
    assert training.looks == 0


def test_a_loss_of_contact_that_nobody_has_noticed_is_no_hang(clock: HandClock, training: Training) -> None:
    """Nor does it wait for the deadline: a host whose commands hang is lost, though its connection stands."""
    hosts = [PingedHost(clock, [False], lets_in=True), PingedHost(clock)]
    outcome = wait(clock, training, hosts)
    assert outcome is not None and outcome.hung_s is None
    lost = outcome.endings[0]
    assert isinstance(lost, Lost) and not lost.answered
    assert "HOST_LOST_AFTER = 20 s" in lost.message and "runs no command" in lost.message
    assert training.looks == 0


def test_a_first_node_that_answers_again_is_not_lost(clock: HandClock, training: Training) -> None:
    hosts = [PingedHost(clock, [False, False, True], lets_in=True), PingedHost(clock)]
    outcome = wait(clock, training, hosts)
    assert (
        outcome is not None and outcome.hung_s is not None
    )  # it hangs all the same, and now that can be told
    assert outcome.endings == {}
    assert training.looks == 1


def test_a_controller_that_stood_still_gives_the_training_that_time(
    clock: HandClock, training: Training
) -> None:
    hangs = training.hangs
    clock.now += LIMIT - 10
    assert not hangs.note_pause(10**4, 1.0)
    clock.now += 10**5
    assert hangs.note_pause(10**5 + 1, 1.0) and hangs.stood_still_s == 10**5
    assert hangs.silence_s() is None
    clock.now += 10 + CATCH_UP_S
    assert hangs.silence_s() is None  # what it reports now is read first
    clock.now += 1
    assert hangs.silence_s() == LIMIT + 1


def test_who_stood_still_past_the_deadline_still_hears_what_ended_meanwhile(
    clock: HandClock, training: Training
) -> None:
    hosts = cast(dict[str, Transport], {"h0": PingedHost(clock), "h1": PingedHost(clock)})
    is_heard = asyncio.Event()

    class Later(FakeRuntime):
        async def wait(self, transport: Transport, name: str) -> int:
            await is_heard.wait()
            return 0

    async def scenario() -> Outcome:
        units = {0: "u0", 1: "u1"}
        watcher = Watch(cast(Runtime, Later()), hosts, units, 20.0, lambda: None, hangs=training.hangs)
        waiting = asyncio.create_task(watcher.run(make_nodes(("h0", "h1")), 10**5))
        await asyncio.sleep(0)
        clock.now += 10**7
        await asyncio.sleep(0.1)  # many looks
        is_heard.set()
        return await waiting

    assert asyncio.run(asyncio.wait_for(scenario(), timeout=60)).all_ended_well


@pytest.mark.parametrize("is_suspended", [True, False])
def test_a_training_that_the_scheduler_lets_stand_still_does_not_hang(
    is_suspended: bool, clock: HandClock, training: Training
) -> None:
    hangs = training.hangs
    hangs.is_suspended = lambda: is_suspended
    for _ in range(int(2 * LIMIT)):
        clock.now += 1
        hangs.note_pause(1.0, 1.0)
    assert (hangs.silence_s() is None) is is_suspended
    hangs.is_suspended = lambda: False
    clock.now += LIMIT + CATCH_UP_S
    hangs.note_pause(1.0, 1.0)
    assert hangs.silence_s() is None or not is_suspended
    clock.now += 1
    assert hangs.silence_s() is not None  # it does not report when it goes on


def test_the_pace_hears_from_when_to_when_there_was_a_pause(clock: HandClock) -> None:
    """Of either kind, as often as it is looked; else it would wait five times as long as the pause for a hang."""
    suspended, heard = iter([False, True, True, False, False]), list[tuple[float, float]]()
    hangs = HangWatch(is_suspended=lambda: next(suspended), paused=lambda *pause: heard.append(pause))
    for _ in range(4):
        clock.now += 1
        hangs.note_pause(1.0, 1.0)
    assert heard == [(clock.now - 3, clock.now - 2), (clock.now - 2, clock.now - 1)]
    clock.now += 10**5
    assert hangs.note_pause(10**5, 1.0)
    assert heard[2:] == [(clock.now - 10**5, clock.now)]


def test_what_decides_that_a_training_hangs_is_told() -> None:
    assert (
        HangWatch(limit_s=lambda: 90.0, setting_s=90.0).limit_text() == "HANG_TIMEOUT = 90 s in test_conf.py"
    )
    by_pace = HangWatch(limit_s=lambda: 312.4).limit_text()
    assert by_pace == "the 312 s that follow from its pace (HANG_TIMEOUT is not set)"
