"""The account of a search, by hand."""

from __future__ import annotations

import pytest

from tests.search_log import (
    BOTH,
    FORWARD,
    TRAINING,
    VALIDATION,
    account_of,
    end,
    epoch,
    start,
    trial,
    two_trials,
    worker,
)
from utils.search import account
from utils.search.account import OfWorker, finished_values
from utils.search.events import SearchEnd, SearchRecord, SearchResumed

FIRST = TRAINING * BOTH + VALIDATION * FORWARD  # operations of an epoch of trial 1; trial 2 has twice as many


def test_score_is_operations_by_the_time_from_the_first_trial_to_the_last_epoch() -> None:
    account = account_of(two_trials())
    assert account.operations == 2 * FIRST + 2 * 2 * FIRST
    assert account.seconds == 400.0
    assert account.score == pytest.approx(6 * FIRST / 400)


def test_the_best_trial_is_that_with_the_best_epoch() -> None:
    best = account_of(two_trials()).best
    assert best is not None
    assert (best.start.trial, best.accuracy) == (2, 0.9)


def test_waiting_is_what_chips_had_no_trial_in() -> None:
    # 10 s of both workers before their first trial, 200 s of worker 1 behind its last, of twice 410 s
    assert account_of(two_trials()).waiting() == pytest.approx(220 / 820)


def test_a_trial_that_was_handed_out_again_counts_once() -> None:
    records = [
        *two_trials()[:3],
        trial(10.0, 1, 1),
        epoch(110.0, 1, 1, 1),
        worker(150.0, 1, "lost"),
        end(150.0, 1, 1, 1, state="lost"),
        trial(150.0, 1, 0, attempt=2),
        epoch(110.0, 1, 1, 2),  # of the worker that was lost: it comes too late
        epoch(250.0, 1, 0, 1, attempt=2),
        end(250.0, 1, 0, 1, attempt=2),
        SearchEnd(300.0, "deadline", 1, 2),
    ]
    account = account_of(records)
    assert account.operations == FIRST
    assert account.seconds == 240.0
    assert (len(account.trials), account.ended["lost"], account.trials[1].state) == (1, 1, "done")
    # worker 0 is there for 300 s and works 100, worker 1 is there for 150 and works 140
    assert account.waiting() == pytest.approx(1 - 240 / 450)


def taken_up() -> list[SearchRecord]:
    """Both workers had a trial from 10 s on, and the controller was away twice: from 110 and, soon back, from 510 s."""
    begun = [start(starts=3, away_s=780.0), *two_trials()[1:7], SearchResumed(500.0, 110.0)]
    return [*begun, SearchResumed(900.0, 510.0)]


def test_a_search_that_is_taken_up_walks_only_the_workers_heard_of_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A log of as many workers as times that it was taken up held the judge up for hours."""
    looks: list[int] = []

    class Counted(OfWorker):
        def __getattribute__(self, name: str) -> object:
            if name == "silent_since_s":
                looks.append(1)
            return super().__getattribute__(name)

        def __setattr__(self, name: str, value: object) -> None:
            looks.append(1)
            super().__setattr__(name, value)

    monkeypatch.setattr(account, "OfWorker", Counted)
    workers = [worker(1.0, number) for number in range(50)]
    taken = account_of([start(), *workers, *[SearchResumed(2.0, 2.0)] * 50, worker(3.0, 7)])
    assert len(looks) < 500
    assert [taken.workers[number].silent_since_s for number in (6, 7)] == [2.0, None]


def test_of_a_worker_that_went_with_a_controller_nothing_counts_behind_that() -> None:
    records = [
        *taken_up(),
        end(905.0, 1, 0, 1, state="lost"),
        worker(905.0, 0, "lost"),
        worker(905.0, 0, session=2),
        trial(915.0, 1, 0, attempt=2),
        epoch(1005.0, 1, 0, 1, attempt=2),
        end(1005.0, 1, 0, 1, state="cut_off", attempt=2),
        end(1005.0, 2, 1, 1, state="cut_off"),
        worker(1005.0, 0, "left"),
        worker(1005.0, 1, "left"),
        SearchEnd(1005.0, "deadline", 2, 3),
    ]
    # both there for 110 s, 10 of them without a trial; worker 0 again for 100 s, of which 10 without one
    assert account_of(records).waiting() == pytest.approx(30 / 320)
    assert account_of(taken_up()).waiting() == pytest.approx(20 / 220), "nor while nobody has come again"


def test_a_worker_that_has_outlived_a_controller_was_there_meanwhile() -> None:
    records = [*taken_up(), epoch(905.0, 2, 1, 2), worker(930.0, 0, "lost"), worker(1010.0, 1, "left")]
    account = account_of([*records, SearchEnd(1010.0, "deadline", 2, 3)])
    assert account.waiting() == pytest.approx(20 / (110 + 1010))


def test_a_trial_that_was_not_lost_is_not_handed_out_again() -> None:
    once = account_of(two_trials()[:9])
    again = account_of([*two_trials()[:9], trial(211.0, 2, 1, attempt=2), trial(211.0, 1, 1, attempt=2)])
    assert (again.trials, again.operations, again.best) == (once.trials, once.operations, once.best)
    assert again.workers[1].trial is None


class Counted(float):
    """An accuracy that counts how often accuracies are compared."""

    compared = 0

    def __lt__(self, other: float) -> bool:
        Counted.compared += 1
        return float(self) < other

    def __gt__(self, other: float) -> bool:
        Counted.compared += 1
        return float(self) > other

    def __le__(self, other: float) -> bool:
        Counted.compared += 1
        return float(self) <= other

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return float(self) == other

    def __neg__(self) -> Counted:
        return Counted(-float(self))

    __hash__ = float.__hash__


def test_an_event_is_little_work_however_many_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that handed the best trial out again went through all trials, each epoch through all of the best one."""
    monkeypatch.setattr(Counted, "compared", 0)
    account = account_of([start(), worker(0.0, 0)])
    count = 2000
    for number in range(1, count + 1):
        account.take(trial(1.0, number, 0))
        account.take(epoch(2.0, number, 0, 1, Counted(0.5)))
        account.take(end(2.0, number, 0, 1, 0.5, "lost"))
    for attempt in range(2, 400):
        account.take(trial(3.0, 1, 0, attempt=attempt))
        account.take(epoch(4.0, 1, 0, 1, Counted(0.9), attempt=attempt))
        account.take(end(4.0, 1, 0, 1, 0.9, "lost", attempt=attempt))
    for number in range(2, 2000):
        account.take(epoch(5.0, 1, 0, number, Counted(0.8), attempt=399))
    assert account.best is account.trials[1]
    assert account.operations > 0 and len(account.trials) == count
    assert Counted.compared < 40 * account.events


def test_where_the_best_trial_was_lost_the_next_best_is_it() -> None:
    records = [
        *two_trials()[:8],
        end(210.0, 2, 1, 2, 0.9, "lost"),
        trial(211.0, 2, 1, parent=1, attempt=2),
    ]
    account = account_of(records)
    assert account.best is account.trials[1] and account.best.accuracy == 0.5
    account.take(epoch(311.0, 2, 1, 1, 0.7, attempt=2))
    assert account.best is account.trials[2] and account.best.accuracy == 0.7


def test_a_controller_that_starts_again_repeats_all() -> None:
    once = account_of(two_trials())
    twice = account_of([*two_trials()[:8], start(starts=2), *two_trials()[1:]])
    assert twice.operations == once.operations
    assert twice.start is not None
    assert twice.start.starts == 2


def test_the_course_of_a_search() -> None:
    course = list(account_of(two_trials()).in_time())
    assert course == [
        (100.0, FIRST, 0.5),
        (100.0, 3 * FIRST, 0.6),
        (200.0, 5 * FIRST, 0.9),
        (400.0, 6 * FIRST, 0.9),
    ]


def test_nothing_is_known_before_the_first_epoch() -> None:
    account = account_of(two_trials()[:5])
    assert (account.score, account.best, account.seconds) == (None, None, None)
    assert finished_values(account)["accuracy"] is None


def test_finished_says_what_the_log_comes_to() -> None:
    assert finished_values(account_of(two_trials())) == {
        "kind": "measure",
        "e2e_time": 410.0,
        "world_size": 8,
        "precision": "fp16",
        "trials": 2,
        "epochs": 4,
        "operations": 6 * FIRST,
        "search_time": 400.0,
        "score": 6 * FIRST / 400,
        "accuracy": 0.9,
    }
