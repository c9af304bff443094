"""What a search's controller keeps, hands out and refuses: the engine without its server, by a clock that is set."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from benchmarks.search.controller import clock, ledger, proposals
from benchmarks.search.controller.database import FILE, StateError, open_database
from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.controller.server import App
from benchmarks.search.controller.turns import Turns
from benchmarks.search.protocol import (
    Beat,
    DataFacts,
    Evaluations,
    History,
    Hyperparameters,
    NextTrial,
    Over,
    Propose,
    Proposed,
    Settled,
    Taken,
    Trial,
    Wait,
    evaluations_of,
)
from benchmarks.search.weight_exchange import PATH
from tests.benchmarks.search.engine_parts import (
    CONFIGURATION,
    Bench,
    beat,
    bench,
    done,
    epoch_of,
    failed,
    proposal,
    register,
    who,
)
from tests.benchmarks.search.engine_processes import SECRET
from tests.benchmarks.search.made_controller import made_facts
from utils.roles import worker_token


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = bench(tmp_path, monkeypatch)
    assert isinstance(made.joined(0), Settled)
    return made


def trained_by(engine: Bench, worker: int) -> Trial:
    """A trial that a worker, which joins, has trained."""
    engine.joined(worker)
    trial = engine.trial(worker)
    engine.tick(10)
    engine.send(epoch_of(trial, 1, worker=worker))
    engine.send(done(trial, worker=worker, stopped=True))
    return trial


def child_at(engine: Bench, worker: int, parent: Trial, *, proposer: int) -> Trial:
    """A child of a trial, which a worker trains and one proposed."""
    assert engine.history(proposer).wanted
    number = 10_000 + len(engine.events("TRIAL_START"))
    engine.send(Propose(**who(proposer), proposed=proposal(number, parent=parent.trial)))
    trial = engine.send(free(worker))
    assert isinstance(trial, Trial)
    return trial


def free(worker: int = 0, **changed: Any) -> NextTrial:
    return NextTrial(**{**who(worker), "waited_s": 0.0, **changed})


def test_a_trial_is_told_of_epoch_by_epoch(engine: Bench) -> None:
    trial = engine.trial()
    assert (trial.trial, trial.attempt, trial.round, trial.epochs) == (1, 1, 1, 2)
    for epoch in (1, 2):
        engine.tick(10)
        assert engine.send(epoch_of(trial, epoch, accuracy=0.1 * epoch)) == Taken()
    assert engine.send(done(trial)) == Taken()
    names = [event.name for event in engine.events()]
    assert names == ["SEARCH_START", "WORKER", "TRIAL_START", "EPOCH", "EPOCH", "TRIAL_END"]
    assert engine.events("TRIAL_END")[0].value["accuracy"] == 0.2
    assert engine.events("EPOCH")[1].value["time_s"] == 20.0
    assert engine.trial().epochs == 3  # of the second round


def test_what_is_sent_again_is_taken_once(engine: Bench) -> None:
    trial = engine.trial()
    assert engine.send(free()) == trial
    engine.tick(10)
    for delayed_s in (0.0, 3.0):
        assert engine.send(epoch_of(trial, 1, delayed_s=delayed_s)) == Taken()
    engine.tick(10)
    engine.send(epoch_of(trial, 2))
    assert [engine.send(done(trial)) for _ in range(2)] == [Taken(), Taken()]
    assert engine.joined(0) == engine.joined(0)
    assert len(engine.events("EPOCH")) == 2
    assert len(engine.events("TRIAL_END")) == len(engine.events("WORKER")) == 1


@pytest.mark.parametrize(
    ("epoch", "changed", "says"),
    [
        (2, {}, "does not follow epoch 0"),
        (3, {}, "does not follow epoch 0"),
        (1, {"training_samples": 1001}, "1001 training_samples in an epoch; there are 1000"),
        (1, {"validation_samples": 101}, "101 validation_samples"),
        (1, {"training_samples": 0}, "0 training_samples"),
        (1, {"seconds": 40.0}, "40.0 s, 30.0 s after the answer before"),
        (1, {"training_samples": 999}, "999 training_samples in an epoch; there are 1000"),
    ],
)
def test_an_epoch_that_cannot_be_is_refused(
    engine: Bench, epoch: int, changed: dict[str, Any], says: str
) -> None:
    trial = engine.trial()
    engine.tick(30)
    status, reason = engine.refused(epoch_of(trial, epoch, **{"seconds": 30.0, **changed}))
    assert status == 422
    assert says in reason
    assert not engine.events("EPOCH")


@pytest.mark.parametrize(
    ("peak", "seconds", "says"),
    [
        (
            3e7,
            (60.0, 50.0),
            "an epoch of trial 1 is faster than the chips: 3.1e+09 operations in 50 s on 2 chips",
        ),
        (
            5e9,
            (0.5, 0.5),
            "trial 1 is faster than the chips: 6.2e+09 operations in 0.500 s on 2 chips of 5e+09/s",
        ),
    ],
    ids=["by its own clock", "by the controller's"],
)
def test_an_epoch_that_is_faster_than_the_chips_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peak: float, seconds: tuple[float, float], says: str
) -> None:
    """Whoever judges the round would refuse all of it."""
    engine = bench(tmp_path, monkeypatch, peaks={"bf16": peak, "fp16": 1.0})
    engine.send(register(ranks=2))
    trial = engine.trial()
    for number, took in enumerate(seconds, 1):
        engine.now_s += took if took > 1 else 0.0
        epoch = epoch_of(trial, number, seconds=took)
        if number == 1:
            assert engine.send(epoch) == Taken()
    status, reason = engine.refused(epoch)
    assert (status, len(engine.events("EPOCH"))) == (422, 1)
    assert reason.startswith(says) and reason.endswith("(the plan's chip, in bf16)")


def test_an_epoch_may_be_told_of_late_where_the_worker_says_so(engine: Bench) -> None:
    trial = engine.trial()
    engine.tick(20)
    assert engine.send(epoch_of(trial, 1, seconds=2.0, delayed_s=18.0)) == Taken()


def test_a_controller_that_stood_still_does_not_blame_the_worker_for_it(engine: Bench) -> None:
    trial = engine.trial()
    engine.now_s += 10 + 25  # what it sends is read 25 s later, of which it knows nothing
    assert engine.send(epoch_of(trial, 1)) == Taken()
    engine.tick(29)
    engine.send(beat(0))
    engine.tick(29)
    assert "57.0 s are in no epoch" in engine.refused(epoch_of(trial, 2, seconds=1.0))[1]


def test_an_epoch_is_not_told_of_twice_in_different_words(engine: Bench) -> None:
    trial = engine.trial()
    engine.tick(10)
    engine.send(epoch_of(trial, 1))
    assert engine.refused(epoch_of(trial, 1, accuracy=0.9)) == (
        422,
        "epoch 1 was told of before, and otherwise",
    )
    engine.tick(10)
    engine.send(epoch_of(trial, 2))
    assert engine.refused(epoch_of(trial, 3))[0] == 422  # more than the trial has


def test_a_trial_does_not_end_before_its_epochs(engine: Bench) -> None:
    trial = engine.trial()
    assert engine.refused(done(trial)) == (422, "it ends after 0 of 2 epochs")
    assert engine.refused(done(trial, stopped=True))[0] == 422
    engine.tick(10)
    engine.send(epoch_of(trial, 1))
    assert engine.send(done(trial, stopped=True)) == Taken()


def test_others_trials_are_refused(engine: Bench) -> None:
    engine.joined(1)
    trial, _ = engine.trial(0), engine.trial(1)
    engine.tick(10)
    assert engine.refused(epoch_of(trial, 1, worker=1))[0] == 409
    assert engine.refused(done(trial, 1))[0] == 409


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"session": "f" * 32}, 409),  # the number is taken
        ({"worker": 2}, 422),  # of two, from 0
        ({"worker": 1, "data": DataFacts(1000, 100, "cd" * 32)}, 422),
        ({"worker": 1, "data": DataFacts(2000, 100, "ab" * 32)}, 422),
        ({"worker": 1, "precision": "fp16"}, 422),
    ],
)
def test_a_worker_that_does_not_fit_is_refused(engine: Bench, changed: dict[str, Any], status: int) -> None:
    assert engine.refused(register(changed.pop("worker", 0), **changed))[0] == status
    assert len(engine.events("WORKER")) == 1


def test_who_is_not_registered_or_has_another_session_is_refused(engine: Bench) -> None:
    assert engine.refused(free(1))[0] == 410
    assert engine.refused(NextTrial(**who(0, session="f" * 32), waited_s=0.0))[0] == 409
    assert engine.refused(NextTrial(**who(0, start=2), waited_s=0.0))[0] == 409


def test_a_worker_that_is_not_heard_of_is_lost_and_its_trial_is_the_next_ones(engine: Bench) -> None:
    engine.joined(1)
    trial = engine.trial(0)
    for _ in range(4):
        engine.tick(10)
        engine.send(beat(1))
    assert [event.value["state"] for event in engine.events("WORKER")] == ["joined", "joined", "lost"]
    again = engine.send(free(1))
    assert isinstance(again, Trial)
    assert (again.trial, again.attempt, again.proposed) == (trial.trial, 2, trial.proposed)
    assert engine.refused(epoch_of(trial, 1))[0] == 410
    assert isinstance(engine.joined(0), Settled)
    assert engine.events("WORKER")[-1].value["state"] == "back"
    assert engine.refused(epoch_of(trial, 1))[0] == 409


def test_a_trial_that_is_lost_again_and_again_is_not_handed_out_for_ever(engine: Bench) -> None:
    for attempt in (1, 2, 3):
        trial = engine.trial() if attempt == 1 else engine.send(free())
        assert isinstance(trial, Trial)
        assert (trial.trial, trial.attempt) == (1, attempt)
        engine.tick(31)
        engine.joined(0)
    assert isinstance(engine.send(free()), Wait)


def test_a_worker_that_is_started_anew_takes_over_at_once(engine: Bench) -> None:
    engine.trial(0)
    engine.send(register(0, start=2))
    states = [(event.value["session"], event.value["state"]) for event in engine.events("WORKER")]
    assert states == [(1, "joined"), (1, "lost"), (2, "joined")]
    assert engine.events("TRIAL_END")[0].value["state"] == "lost"
    assert engine.refused(beat(0))[0] == 409
    assert engine.refused(register(0))[0] == 409  # the earlier start does not come back


def test_workers_of_another_launcher_take_over_once_the_controller_has_started_anew(engine: Bench) -> None:
    engine.joined(1)
    trial = engine.trial(0)
    engine.ledger.close()
    engine.start()
    engine.send(beat(1))
    assert isinstance(engine.send(register(0, session="f" * 32)), Settled)
    states = [event.value["state"] for event in engine.events("WORKER") if event.value["worker"] == 0]
    assert states == ["joined", "lost", "joined"]
    again = engine.send(free(0, session="f" * 32))
    assert isinstance(again, Trial) and (again.trial, again.attempt) == (trial.trial, 2)
    assert engine.refused(beat(0))[0] == 409  # the earlier launcher's has come too late
    assert engine.refused(register(1, session="e" * 32))[0] == 409  # that one has been heard of


def test_chips_of_workers_that_went_with_a_controller_are_not_taken_for_busy(engine: Bench) -> None:
    engine.trial(0)
    engine.tick(10)
    for _ in range(2):
        engine.ledger.close()
        engine.now_s += 500.0
        engine.start()
    engine.send(register(0, session="f" * 32))
    engine.tick(10)
    engine.ask(lambda: engine.search.end("deadline"))
    assert [event.value["seen_s"] for event in engine.events("SEARCH_RESUMED")] == [10.0, 510.0]
    assert engine.ledger.account.waiting() == pytest.approx(10 / 20)


def test_waiting_of_lost_and_restarted_sessions_stays_in_the_sum(engine: Bench) -> None:
    engine.tick(20)
    engine.send(beat(0, waited_s=10.0))
    engine.send(beat(0, waited_s=8.0))  # of another thread, late
    engine.tick(31)
    engine.joined(0)  # back
    engine.send(beat(0, waited_s=12.0))
    engine.send(register(0, start=2))
    engine.tick(5)
    engine.send(NextTrial(**who(0, start=2), waited_s=4.0))
    engine.ledger.close()
    engine.start()
    engine.ask(lambda: engine.search.end("deadline"))
    waited = [(event.value["state"], event.value["waited_s"]) for event in engine.events("WORKER")]
    assert waited[-1] == ("left", 16.0)
    assert ("lost", 10.0) in waited


def test_nobody_waits_longer_than_he_is_there(engine: Bench) -> None:
    engine.tick(20)
    assert engine.refused(beat(0, waited_s=30.0))[0] == 422
    engine.send(beat(0, waited_s=20.9))  # some slack; but what is told of it adds up
    engine.send(register(0, start=2))
    assert engine.events("WORKER")[-1].value["waited_s"] == 20.0


def test_a_worker_that_talks_too_much_is_done_without_before_the_log_is_full(
    engine: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "MOST_EVENTS", 300)
    engine.joined(1)
    number = 0
    while not isinstance(engine.joined(1), Over):
        number += 1
        assert number < 300
        engine.tick(1)
        engine.send(beat(0))
        engine.proposed(1, number)
        trial = engine.send(NextTrial(**who(1), waited_s=0.0))
        if isinstance(trial, Trial):
            engine.tick(1)
            engine.send(epoch_of(trial, 1, worker=1, seconds=1.0))
            engine.send(done(trial, worker=1, stopped=True))
    assert engine.events("WORKER")[-1].value["reason"] == "it has brought about more events than a worker may"
    assert len(engine.events()) < 120
    assert isinstance(engine.trial(0), Trial), "the other goes on"
    engine.ledger.close()
    engine.start()
    assert engine.joined(1) == Over("it has brought about more events than a worker may")


def test_a_worker_whose_trials_all_fail_is_done_without(engine: Bench) -> None:
    for number in range(1, 6):
        reply = engine.send(failed(engine.trial()))
        assert isinstance(reply, Over if number == 5 else Taken)
    assert engine.send(free()) == Over("this worker is done without")
    assert engine.events("TRIAL_END")[-1].value["reason"] == "the loss is nan"
    assert engine.events("WORKER")[-1].value["reason"] == "5 trials failed one after the other"


def test_proposals_are_kept_ahead_for_each_worker_and_no_more(engine: Bench) -> None:
    engine.joined(1)

    def is_wanted(worker: int) -> bool:
        reply = engine.send(History(**who(worker), after=0))
        assert isinstance(reply, Evaluations)
        return reply.wanted

    assert [is_wanted(0), is_wanted(1), is_wanted(0)] == [True, True, True]
    engine.proposed(0, 1)
    assert [is_wanted(0), is_wanted(1)] == [False, True]
    engine.proposed(1, 2)
    assert not is_wanted(1)
    engine.send(free(0))
    assert is_wanted(1)
    assert not is_wanted(0)
    for _ in range(4):  # what is promised and does not come is asked of another
        engine.tick(16)
        engine.send(beat(0))
        engine.send(beat(1))
    assert is_wanted(0)


def test_what_came_of_proposals_is_told_once_each_time_it_changes(engine: Bench) -> None:
    trial = engine.trial()
    reply = engine.send(History(**who(0), after=0))
    assert isinstance(reply, Evaluations)
    assert [(each.trial, each.has_ended) for each in evaluations_of(reply)] == [(None, False)]
    engine.tick(10)
    engine.send(epoch_of(trial, 1, accuracy=0.75))
    engine.send(done(trial, stopped=True))
    later = engine.send(History(**who(0), after=reply.latest))
    assert isinstance(later, Evaluations)
    assert [(each.trial, each.accuracy) for each in evaluations_of(later)] == [(1, 0.75)]
    rest = engine.send(History(**who(0), after=later.latest))
    assert isinstance(rest, Evaluations)
    assert evaluations_of(rest) == ()


def took(engine: Bench, proposed: Proposed) -> bool:
    """Whether a worker's proposal was put into the queue."""
    count = "SELECT count(*) FROM proposals"
    before = engine.ledger.value(count)
    assert engine.send(Propose(**who(0), proposed=proposed)) == Taken()
    return bool(engine.ledger.value(count) == before + 1)


def test_nothing_is_tried_twice(engine: Bench) -> None:
    engine.joined(1)
    other = replace(proposal(7), hyperparameters=Hyperparameters(0.1, 5, 64))
    for is_new, proposed in ((True, proposal(7)), (False, proposal(7)), (False, other)):
        assert engine.history().wanted
        assert took(engine, proposed) is is_new


def test_a_proposal_is_taken_of_whom_one_was_wanted_once(engine: Bench) -> None:
    engine.joined(1)
    assert not took(engine, proposal(1))
    assert engine.history().wanted
    engine.tick(20)
    for number in (2, 3):
        assert took(engine, proposal(number)) is (number == 2)


def test_one_worker_does_not_fill_the_queue_of_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = bench(tmp_path, monkeypatch, workers=10)
    for worker in range(10):
        engine.joined(worker)
    for number in range(8):
        engine.proposed(0, number)
    assert not engine.history(0).wanted
    assert engine.history(1).wanted


def test_history_is_told_in_pages_that_a_client_takes(engine: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.joined(1)
    for worker in (0, 1):
        engine.proposed(worker, 1 + worker)
    monkeypatch.setattr(proposals, "PAGE_BYTES", 10)  # less than one has
    first = engine.history()
    assert [each.proposal for each in evaluations_of(first)] == [1]
    second = engine.send(History(**who(0), after=first.latest))
    assert isinstance(second, Evaluations)
    assert [each.proposal for each in evaluations_of(second)] == [2]
    assert (first.again_s, second.again_s > 0) == (0.0, True)


def test_anothers_proposals_that_fail_are_not_the_workers_fault(engine: Bench) -> None:
    engine.joined(1)
    for number in range(6):
        engine.proposed(1, number)
        trial = engine.send(free())
        assert isinstance(trial, Trial)
        assert engine.send(failed(trial)) == Taken()
    for number in range(4):  # the first of another's counts: it may be the worker
        assert isinstance(engine.send(failed(engine.trial())), Over if number == 3 else Taken)


def test_trials_of_a_parent_that_another_trained_are_not_the_workers_fault(engine: Bench) -> None:
    parent = trained_by(engine, 1)
    for _ in range(7):  # of its own proposals, whose weights fail it
        assert engine.send(failed(child_at(engine, 0, parent, proposer=0))) == Taken()


def test_a_worker_that_fails_whatever_it_is_given_is_done_without(engine: Bench) -> None:
    """All that it is given is of the only other worker, of whom the first failure alone speaks against it."""
    parent = trained_by(engine, 1)
    replies = []
    while len(replies) < 20:
        child = child_at(engine, 0, parent, proposer=1)
        engine.tick(1)
        replies.append(engine.send(failed(child)))
    assert replies == [Taken()] * 19 + [Over("20 trials failed one after the other")]


@pytest.mark.parametrize("proposers", [(1,), (1, 2)])
def test_of_several_workers_one_alone_has_no_other_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proposers: tuple[int, ...]
) -> None:
    engine = bench(tmp_path, monkeypatch, workers=3)
    for worker in range(3):
        engine.joined(worker)
    parent = trained_by(engine, 1)
    replies = []
    for number in range(20):
        child = child_at(engine, 0, parent, proposer=proposers[number % len(proposers)])
        engine.tick(1)
        for worker in range(3):
            engine.send(beat(worker))
        replies.append(engine.send(failed(child)))
    assert replies[:19] == [Taken()] * 19
    assert isinstance(replies[19], Taken if len(proposers) == 1 else Over)


def test_anothers_requests_do_not_spend_a_workers_allowance(engine: Bench) -> None:
    for _ in range(300):
        assert engine.refused(NextTrial(**who(0, session="f" * 32), waited_s=0.0))[0] == 409
        assert engine.refused(register(0, session="f" * 32))[0] == 409
    assert isinstance(engine.send(beat(0)), Beat)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"precision": "fp16"}, "its precision is not what the controller has: bf16"),
        ({"ranks": 3}, "its ranks is not what the controller has: 2"),
        (
            {"configuration": "cd" * 32},
            "its configuration is not what the controller has: compare INIT_START",
        ),
        ({"node_rank": 0}, "worker 2 is of node 1"),
        ({"worker": 4}, "worker 4 of 4"),
    ],
)
def test_who_comes_first_does_not_say_what_the_plan_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], says: str
) -> None:
    engine = bench(
        tmp_path, monkeypatch, workers=4, precision="bf16", ranks=2, nodes=2, configuration=CONFIGURATION
    )
    right = {"ranks": 2, "node_rank": 1}
    status, reason = engine.refused(register(**{"worker": 2, **right, **changed}))
    assert (status, reason) == (422, reason) and says in reason
    assert isinstance(engine.send(register(2, **right)), Settled)


def test_weights_are_stored_of_what_a_worker_trains_alone(engine: Bench) -> None:
    engine.joined(1)
    first = engine.trial(0)
    trials = engine.search.trials
    assert engine.ask(lambda: trials.parameters_of(0, first.trial)) == 1000
    for worker, trial in ((1, first.trial), (0, 2), (0, 2**31)):
        with pytest.raises(RefuseError, match="is not this worker's"):
            engine.ask(lambda: trials.parameters_of(worker, trial))  # noqa: B023
    engine.send(failed(first))
    assert engine.ask(lambda: trials.parameters_of(0, first.trial)) == 1000
    engine.trial(0)
    with pytest.raises(RefuseError, match="is not this worker's"):
        engine.ask(lambda: trials.parameters_of(0, first.trial))


async def status_of_weights(engine: Bench, trial: int) -> int:
    """With what a worker that asks for them is answered."""
    statuses = []

    async def stored(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"status": 200})

    async def send(message: Any) -> None:
        statuses.append(message.get("status", 0))

    async def receive() -> Any:
        raise AssertionError("nothing is to be read")

    turns = Turns(engine.ledger)
    app = App(engine.search, turns, SECRET, made_facts, stored)
    authorization = f"Bearer {worker_token(SECRET, 0)}".encode()
    scope = {"method": "GET", "path": f"{PATH}{trial}", "headers": [(b"authorization", authorization)]}
    await app(scope, receive, send)
    turns.close()
    return int(statuses[0])


@pytest.mark.parametrize("first_fails", [True, False])
def test_where_children_fail_by_their_parents_weights_the_next_begin_without(
    engine: Bench, first_fails: bool
) -> None:
    """Of a parent whose first child did not, it is not the weights."""
    parent = trained_by(engine, 1)
    for number in range(4):
        is_refused = first_fails and number == 3
        assert asyncio.run(status_of_weights(engine, parent.trial)) == (404 if is_refused else 200)
        child = child_at(engine, 0, parent, proposer=0)
        if number or first_fails:
            assert engine.send(failed(child)) == Taken()
        else:
            engine.tick(10)
            engine.send(epoch_of(child, 1))
            engine.send(done(child, stopped=True))


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_child_that_began_before_the_others_had_failed_and_is_done_speaks_for_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_begun: bool
) -> None:
    """One that begins later begins without them, and says nothing of them."""
    engine = bench(tmp_path, monkeypatch, workers=3)
    for worker in (0, 2):
        engine.joined(worker)
    parent, other = trained_by(engine, 1), None
    for number in range(3):
        worker = 2 * (number % 2)
        child = child_at(engine, worker, parent, proposer=worker)
        if has_begun and number == 2:
            other = child_at(engine, 1, parent, proposer=1)
        engine.tick(10)
        engine.send(failed(child, worker=worker))
    assert asyncio.run(status_of_weights(engine, parent.trial)) == 404
    other = other or child_at(engine, 1, parent, proposer=1)
    engine.tick(10)
    engine.send(epoch_of(other, 1, worker=1))
    engine.send(done(other, worker=1, stopped=True))
    assert asyncio.run(status_of_weights(engine, parent.trial)) == (200 if has_begun else 404)


@pytest.mark.parametrize(
    "reason",
    [
        "rank 0: OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "rank 1: RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB",
        "rank 0: RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.",
        "rank 0: _ArrayMemoryError: Unable to allocate 7.11 PiB for an array",
    ],
)
def test_children_that_are_too_large_for_their_chip_have_not_failed_by_weights(
    engine: Bench, reason: str
) -> None:
    parent = trained_by(engine, 1)
    for _ in range(3):
        engine.send(failed(child_at(engine, 0, parent, proposer=0), reason=reason))
    assert asyncio.run(status_of_weights(engine, parent.trial)) == 200


def test_a_worker_at_which_all_fails_spoils_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = bench(tmp_path, monkeypatch, workers=3)
    for worker in (0, 2):
        engine.joined(worker)
    parent = trained_by(engine, 1)
    for _ in range(6):
        engine.send(failed(child_at(engine, 0, parent, proposer=0)))
        assert asyncio.run(status_of_weights(engine, parent.trial)) == 200
    engine.send(failed(child_at(engine, 2, parent, proposer=2), worker=2))
    assert asyncio.run(status_of_weights(engine, parent.trial)) == 404


def test_a_worker_that_was_done_without_has_spoilt_no_weights(engine: Bench) -> None:
    """In a search on two it is believed as long as it is there."""
    parent = trained_by(engine, 1)
    for _ in range(20):
        reply = engine.send(failed(child_at(engine, 0, parent, proposer=1)))
        engine.tick(1)
    assert isinstance(reply, Over)
    assert asyncio.run(status_of_weights(engine, parent.trial)) == 200


def test_children_that_ended_their_workers_ranks_have_failed_by_weights(engine: Bench) -> None:
    """Each start of a worker is a life of it: another trial's weights do not cost all of them."""
    parent = trained_by(engine, 1)
    child_at(engine, 0, parent, proposer=1)
    for start in (2, 3, 4):
        assert asyncio.run(status_of_weights(engine, parent.trial)) == 200
        engine.tick(1)
        engine.send(register(0, start=start))
        assert isinstance(engine.send(free(0, start=start)), Trial) or start == 4
    assert asyncio.run(status_of_weights(engine, parent.trial)) == 404


@pytest.mark.parametrize("are_silent", [False, True])
def test_one_child_that_ends_ranks_or_workers_that_are_not_heard_of_spoil_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, are_silent: bool
) -> None:
    """Of several others: it may be that child's size, or the network between the hosts."""
    engine = bench(tmp_path, monkeypatch, workers=4)
    for worker in (0, 2, 3):
        engine.joined(worker)
    parent = trained_by(engine, 1)
    if are_silent:
        for worker in (0, 2, 3):
            child_at(engine, worker, parent, proposer=worker)
        engine.tick(engine.settings.lost_s + 1)
        for worker in (0, 2, 3):
            engine.send(register(worker))
    else:
        child_at(engine, 0, parent, proposer=0)
        for worker, other in ((0, 2), (2, 3), (3, 3)):
            engine.tick(1)
            engine.send(register(worker, start=2))
            engine.send(free(other, start=1 + (other == worker)))
    lost = [event.value for event in engine.events("TRIAL_END") if event.value["state"] == "lost"]
    assert len(lost) == 3
    assert asyncio.run(status_of_weights(engine, parent.trial)) == 200


def test_two_children_that_end_the_ranks_of_two_workers_spoil_them_before_their_last_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = bench(tmp_path, monkeypatch, workers=3)
    for worker in (0, 2):
        engine.joined(worker)
    parent = trained_by(engine, 1)
    for worker in (0, 2):
        child_at(engine, worker, parent, proposer=worker)
    for worker, start in ((0, 2), (2, 2), (0, 3)):
        assert asyncio.run(status_of_weights(engine, parent.trial)) == 200
        engine.tick(1)
        engine.send(register(worker, start=start))
        assert isinstance(engine.send(free(worker, start=start)), Trial)
    assert asyncio.run(status_of_weights(engine, parent.trial)) == 404


def test_too_many_requests_are_refused_and_only_those_of_that_worker(engine: Bench) -> None:
    engine.joined(1)
    for _ in range(199):
        engine.send(beat(0))
    assert engine.refused(beat(0))[0] == 429
    assert isinstance(engine.send(beat(1)), Beat)
    engine.tick(0.1)
    assert isinstance(engine.send(beat(0)), Beat)


def test_the_deadline_ends_all_and_the_last_heartbeat_is_due_right_behind_it(engine: Bench) -> None:
    trial = engine.trial()
    engine.now_s += 3598
    assert engine.send(beat(0)).next_s < 2.7  # type: ignore[union-attr]
    engine.now_s += 2
    assert engine.send(epoch_of(trial, 1)) == Over("deadline")
    assert engine.events("TRIAL_END")[0].value["state"] == "cut_off"
    assert engine.events("SEARCH_END")[0].value == {
        "time_s": 3600.0,
        "reason": "deadline",
        "trials": 1,
        "epochs": 0,
    }


def test_after_the_last_trial_workers_leave_and_the_search_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = bench(tmp_path, monkeypatch, max_trials=1)
    engine.joined(0)
    engine.joined(1)
    trial = engine.trial(0)
    assert engine.send(free(1)) == Over("all trials are handed out")
    engine.tick()
    assert not engine.search.over
    engine.send(failed(trial))
    engine.tick()
    assert engine.search.over == "trials"


def test_a_search_without_workers_fails(engine: Bench) -> None:
    engine.tick(31)
    engine.tick(560)
    assert not engine.search.over
    engine.tick(10)
    assert engine.search.over == "workers"


def test_a_search_that_had_no_workers_goes_on_where_there_are_some_again(engine: Bench) -> None:
    trial = engine.trial()
    engine.tick(31)
    engine.tick(610)
    assert (engine.search.over, len(engine.events("SEARCH_END"))) == ("workers", 1)
    engine.ledger.close()
    engine.now_s += 100
    engine.start()
    assert (engine.search.over, engine.events("SEARCH_END")) == (None, [])
    assert isinstance(engine.send(register(0, session="f" * 32)), Settled)
    again = engine.send(free(session="f" * 32))
    assert isinstance(again, Trial) and (again.trial, again.attempt) == (trial.trial, 2)


def test_another_start_goes_on_and_time_has_gone_on_too(engine: Bench) -> None:
    trial = engine.trial()
    engine.tick(10)
    engine.send(epoch_of(trial, 1))
    before = engine.events()[1:]
    engine.ledger.close()
    engine.now_s += 20
    engine.start()
    first, *again, resumed = engine.events()
    assert again == before
    assert resumed.value == {"time_s": 30.0, "seen_s": 10.0}
    assert (first.value["starts"], first.value["away_s"], first.value["time_s"]) == (2, 20.0, 30.0)
    assert engine.send(epoch_of(trial, 2, seconds=20.0)) == Taken()
    while engine.now_s < 1000 + 3610:
        engine.tick(10)
        engine.send(beat(0))
    assert not engine.search.over  # away is not counted
    engine.tick(10)
    assert engine.search.over == "deadline"


def test_a_machine_that_was_started_since_takes_the_wall_clock(
    engine: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.tick(50)
    engine.ledger.close()
    monkeypatch.setattr(clock, "_boot", lambda: "another")
    wall = clock.time.time() + 80
    monkeypatch.setattr(clock.time, "time", lambda: wall)
    engine.now_s = 5.0
    engine.start()
    assert 80 <= engine.events("SEARCH_START")[0].value["time_s"] < 90


def test_a_search_with_other_settings_does_not_go_on(
    engine: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.ledger.close()
    with pytest.raises(StateError, match=r"search_seconds was 3600.0, and is 7200.0"):
        bench(tmp_path, monkeypatch, search_seconds=7200.0)


def damaged(path: Path) -> None:
    text = bytearray(path.read_bytes())
    text[4096:] = b"\xff" * (len(text) - 4096)
    path.write_bytes(text)


def changed_by(statement: str) -> Any:
    def change(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()

    return change


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def doubled(path: Path) -> None:
    os.link(path, path.with_name("elsewhere"))


def linked_log(path: Path) -> None:
    path.with_name(FILE + "-wal").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (damaged, "damaged|malformed|cannot be used"),
        (lambda path: path.write_bytes(b"no database" * 1000), "not a database"),
        (changed_by("CREATE VIEW more AS SELECT 1"), "is no state of a search"),
        (changed_by("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END"), "is no state"),
        (changed_by("DROP TABLE epochs"), "is no state of a search"),
        (changed_by("UPDATE search SET seen_s = 'soon'"), "1 values of search.seen_s"),
        (changed_by("UPDATE events SET value = x'00'"), "values of events.value"),
        (linked, "is a link"),
        (doubled, "no file of this user alone"),
        (linked_log, "is a link"),
    ],
)
def test_a_state_that_is_damaged_or_planted_is_refused(engine: Bench, plant: Any, says: str) -> None:
    engine.ledger.close()
    plant(engine.folder / FILE)
    with pytest.raises(StateError, match=says):
        open_database(engine.folder)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET value = '{}'",
        "UPDATE events SET value = replace(value, '0.5', '-0.5') WHERE name = 'EPOCH'",
        "UPDATE events SET name = 'SHUTDOWN'",
        "UPDATE proposals SET proposed = '[' ",
        "UPDATE proposals SET told = '{\"proposal\":1}'",
        "UPDATE search SET name = 'mine', settings = settings",
        "UPDATE search SET end_reason = 'enough'",
        "UPDATE search SET settings = '{}'",
    ],
)
def test_texts_that_no_controller_writes_are_refused(engine: Bench, statement: str) -> None:
    trial = engine.trial()
    engine.tick(10)
    engine.send(epoch_of(trial, 1))
    engine.ledger.close()
    changed_by(statement)(engine.folder / FILE)
    with pytest.raises(StateError, match=r"no controller writes|other settings"):
        engine.start()


def test_two_controllers_do_not_share_a_state(engine: Bench) -> None:
    with pytest.raises(StateError, match="another controller uses it"):
        open_database(engine.folder)


def test_a_search_goes_on_from_an_earlier_rounds_folder(engine: Bench, tmp_path_factory: Any) -> None:
    engine.trial()
    earlier, engine.folder = engine.folder, tmp_path_factory.mktemp("round2")
    before = engine.events()[1:]  # the earlier controller was killed: its file is as it left it
    open_database(engine.folder, copy_of(earlier, tmp_path_factory.mktemp("earlier"))).close()
    engine.start()
    assert engine.events()[1:-1] == before


def copy_of(folder: Path, target: Path) -> Path:
    """As a kill leaves it: with its log."""
    for path in folder.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    return target
