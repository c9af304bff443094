"""What a rank does of a step by itself is timed in logged steps only, and never costs a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from benchmarks.driver.device import Device
from benchmarks.driver.rank_times import FORWARD, OPTIMIZER, SPREAD, RankTimer


@dataclass
class FakeVendor:
    """FAKE torch.cuda: its events tell the time of `now`, in ms; some vendors' do not."""

    now: float = 0.0
    recorded: int = 0
    broken: str = ""

    def Event(self, enable_timing: bool) -> Any:  # noqa: N802 - as torch has it
        assert enable_timing
        if self.broken == "Event":
            raise NotImplementedError("no timing")
        vendor = self

        class Event:
            at = 0.0

            def record(self) -> None:
                vendor.recorded += 1
                self.at = vendor.now

            def elapsed_time(self, later: Any) -> float:
                if vendor.broken == "elapsed_time":
                    raise RuntimeError("events tell no time")
                return float(later.at - self.at)

        return Event()


def step(timer: RankTimer, vendor: FakeVendor, *pieces: tuple[str, float], is_logged: bool = True) -> None:
    if is_logged:
        timer.begin()
    for name, milliseconds in pieces:
        with timer.part(name):
            vendor.now += milliseconds
        vendor.now += 1000  # a collective
    if is_logged:
        timer.end()


@pytest.fixture
def vendor() -> FakeVendor:
    return FakeVendor()


@pytest.fixture
def timer(vendor: FakeVendor) -> RankTimer:
    return RankTimer(Device(vendor, "acme", "acme:0"))


def test_pieces_of_a_part_are_added_up_and_collectives_are_in_none(
    timer: RankTimer, vendor: FakeVendor
) -> None:
    for milliseconds in (10, 12, 500):
        step(timer, vendor, (FORWARD, milliseconds), (FORWARD, 20), (OPTIMIZER, 5))
    assert timer.steps == 3
    assert timer.medians() == {FORWARD: 0.032, OPTIMIZER: 0.005, SPREAD: 0.002}


def test_steps_that_are_not_logged_cost_no_event(timer: RankTimer, vendor: FakeVendor) -> None:
    step(timer, vendor, (FORWARD, 10), (OPTIMIZER, 5), is_logged=False)
    assert (timer.steps, vendor.recorded) == (0, 0)
    assert timer.medians() == {FORWARD: None, OPTIMIZER: None, SPREAD: None}


@pytest.mark.parametrize("broken", ["Event", "elapsed_time"])
def test_a_vendor_whose_events_tell_no_time_trains_all_the_same(
    timer: RankTimer, vendor: FakeVendor, broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    vendor.broken = broken
    for _ in range(3):
        step(timer, vendor, (FORWARD, 10), (OPTIMIZER, 5))
    assert timer.medians() == {FORWARD: None, OPTIMIZER: None, SPREAD: None}
    assert capsys.readouterr().out.count("the parts of a step are not timed: ") == 1  # said once


def test_an_error_of_the_training_itself_is_not_taken_for_one_of_the_timer(timer: RankTimer) -> None:
    timer.begin()
    with pytest.raises(ZeroDivisionError), timer.part(FORWARD):
        _ = 1 / 0


def test_a_cpu_is_timed_by_the_clock() -> None:
    timer = RankTimer(Device(None, "cpu", "cpu"))
    timer.begin()
    with timer.part(FORWARD):
        pass
    timer.end()
    seconds = timer.medians()[FORWARD]
    assert seconds is not None and seconds >= 0
