"""How long a round's tasks are waited for, and what is said of those that their deadline ended. A FAKE wait."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from run_benchmarks import round_watch
from run_benchmarks.pace import LEAST_STEPS
from run_benchmarks.round_state import RoundState
from run_benchmarks.round_watch import SHORTEST_WATCH_S, TIMED_OUT_CODE, watch_round
from run_benchmarks.stages.hang import HangWatch
from run_benchmarks.stages.watch import Ended, Outcome
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.builders import make_case
from tests.run_benchmarks.one_round import make_session
from utils.events import Event, EventName


def waited(
    monkeypatch: pytest.MonkeyPatch,
    state: RoundState,
    end: Outcome | None = None,
    hangs: HangWatch | None = None,
) -> tuple[float, Outcome]:
    """The limit with which the tasks are waited for, and the outcome; without an `end` the limit comes first."""
    limits: list[float] = []

    async def run(_: object, limit_s: float) -> Outcome:
        limits.append(limit_s)
        return end or Outcome({}, True, {})

    monkeypatch.setattr(
        round_watch, "_watch", lambda *_: SimpleNamespace(run=run, hangs=hangs or HangWatch())
    )
    monkeypatch.setattr(round_watch, "_followers", lambda *_: ())
    session: Any = None
    outcome = asyncio.run(watch_round(session, state, ()))
    return limits[0], outcome


def state_of(deadline_s: float, **times: float) -> RoundState:
    state = RoundState(replace(make_case(), deadline_s=deadline_s), 1, "")
    state.times.update(times)
    return state


def test_a_short_deadline_is_kept_and_one_that_passed_without_a_controller_leaves_time_to_hear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert waited(monkeypatch, state_of(14.4))[0] == 14.4
    assert waited(monkeypatch, state_of(3600.0))[0] == 3600.0
    assert waited(monkeypatch, state_of(3600.0, train=3590.0))[0] == SHORTEST_WATCH_S


@pytest.mark.parametrize(("time_s", "trained_s"), [(5000.0, 0.0), (5000.0, 3600.0), (None, 0.0)])
def test_a_task_that_its_own_time_limit_ended_was_late_unless_there_is_known_to_be_time_left(
    time_s: float | None, trained_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(3600.0, train=trained_s)
    state.time_s = time_s
    ended = Outcome({0: Ended(TIMED_OUT_CODE, 1.0)}, False, {})
    is_known = trained_s == 0.0 and time_s is not None
    assert waited(monkeypatch, state, ended)[1].timed_out is not is_known


@pytest.mark.parametrize(("ago_s", "goes_on"), [(0.0, True), (100.0, False)])
def test_a_training_goes_on_that_was_silent_for_no_longer_than_before(
    ago_s: float, goes_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(14.4)
    assert not waited(monkeypatch, state)[1].goes_on
    now = time.monotonic() - ago_s
    for at in (now - 50.0, now):
        state.training.pace.note(Event(EventName.STEP_END), at)
    state.training.progressed_at = now
    assert waited(monkeypatch, state)[1].goes_on is goes_on


@pytest.mark.parametrize(("deadline_s", "timed_out"), [(-1.0, True), (3600.0, False)])
def test_tasks_that_ended_at_their_deadline_while_the_controller_stood_still_timed_out(
    deadline_s: float, timed_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it did not, they end so by themselves."""
    ends = Outcome({0: Ended(124, 1.0)}, False, {})
    state = state_of(3600.0)
    monkeypatch.setattr(round_watch, "_left_s", lambda _: deadline_s)
    outcome = waited(monkeypatch, state, ends)[1]
    assert (outcome.timed_out, bool(outcome.endings)) == (timed_out, not timed_out)


def test_that_the_controller_stood_still_is_a_note_of_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(3600.0)
    waited(monkeypatch, state)
    assert state.notes == []
    waited(monkeypatch, state, hangs=HangWatch(stood_still_s=45.2))
    assert len(state.notes) == 1 and "the controller stood still for 45 s" in state.notes[0]


def test_the_pace_of_a_round_hears_of_a_pause(tmp_path: Path) -> None:
    """A pause that began before any event leaves no gap to go by."""
    session = make_session(tmp_path, FakeRuntime())
    state = RoundState(session.plan.cases[0], 1, "")
    hangs = round_watch._watch(session, state, ()).hangs
    for _ in range(LEAST_STEPS + 1):
        state.training.update(Event(EventName.STEP_END))
    assert hangs.limit_s() is not None
    assert hangs.note_pause(10**6, 1.0)
    assert hangs.limit_s() is None
    session.journal.close()
