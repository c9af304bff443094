"""Trials: handed out once, told of epoch by epoch, and handed out again where a worker is lost with one."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from benchmarks.search.client import ANSWER_S
from benchmarks.search.controller.ledger import Ledger
from benchmarks.search.controller.proposals import Facts, Proposals
from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.controller.settings import SearchSettings
from benchmarks.search.protocol import (
    NOT_YOURS,
    WRONG,
    DataFacts,
    EpochDone,
    Proposed,
    Taken,
    Trial,
    TrialDone,
    TrialFailed,
    Wait,
    encode,
)
from utils.figure_records import Peak
from utils.search.events import Epoch, TrialEnd, TrialStart, TrialState
from utils.search.limits import too_fast
from utils.text_files import one_line

MOST_ATTEMPTS = 3  # a trial that was lost so often may be what ends workers
ASKS_PER_S = 200  # of all workers that wait for a trial
SHORTEST_WAIT_S = 0.05
# A clock may run so much faster than another, and an answer be so long on its way.
FASTER, ON_ITS_WAY_S = 0.01, 0.5
# An epoch that ended so long before it was told of, beside what the worker says of that, is none. Its last try may have
# lain here unread for ANSWER_S, of which the worker knows nothing.
UNTOLD, UNTOLD_S = 0.1, 10.0 + ANSWER_S
OfAttempt: TypeAlias = EpochDone | TrialDone | TrialFailed


@dataclass
class Trials:
    """The trials of a search."""

    ledger: Ledger
    settings: SearchSettings
    proposals: Proposals

    def round_of(self, worker: int) -> int:
        """The round that a worker's next trial is of: trials that it has trained, and one."""
        query = "SELECT count(*) FROM trials WHERE worker = ? AND state IN ('done', 'stopped')"
        return int(self.ledger.value(query, worker)) + 1

    def next_for(self, worker: int) -> Trial | Wait | None:
        """The worker's open trial, or the next one; None where no more are to be handed out.

        One that was lost with another worker comes first.
        """
        trial = self.open_of(worker)
        if trial is None:
            query = "SELECT * FROM proposals WHERE state = 'queued' ORDER BY trial IS NULL, proposal LIMIT 1"
            queued = self.ledger.row(query)
            if (queued is None or queued["trial"] is None) and self.are_all_handed():
                return None
            if queued is None:
                return Wait(max(SHORTEST_WAIT_S, (self.ledger.count_live() - self.count_open()) / ASKS_PER_S))
            self._hand(worker, queued)
            return self.next_for(worker)
        self._answered(trial)
        proposed = self.ledger.value("SELECT proposed FROM proposals WHERE proposal = ?", trial["proposal"])
        return Trial(
            trial["trial"],
            trial["attempt"],
            trial["round"],
            trial["epochs"],
            msgspec.json.decode(proposed, type=Proposed),
        )

    def open_of(self, worker: int) -> sqlite3.Row | None:
        """The trial that a worker trains."""
        return self.ledger.row("SELECT * FROM trials WHERE worker = ? AND state = 'open'", worker)

    def makers_of(self, trial: sqlite3.Row) -> set[int]:
        """The workers that proposed a trial, and that trained the one whose weights it begins with."""
        query = "SELECT proposer, proposed FROM proposals WHERE proposal = ?"
        row = self.ledger.rows(query, trial["proposal"])[0]
        parent = msgspec.json.decode(row["proposed"], type=Proposed).parent
        query = "SELECT worker FROM trials WHERE trial = ? ORDER BY attempt DESC LIMIT 1"
        trainers = [each["worker"] for each in self.ledger.rows(query, parent)]
        return {each for each in (row["proposer"], *trainers) if each is not None}

    def parameters_of(self, worker: int, trial: int) -> int:
        """Of the network that a worker trains, or has trained last.

        Raises:
            RefuseError: the trial is another one.
        """
        query = """SELECT trials.trial, trials.state, facts FROM trials JOIN proposals USING (proposal)
            WHERE worker = ? ORDER BY trials.rowid DESC LIMIT 1"""
        row = self.ledger.row(query, worker)
        if row is None or row["trial"] != trial or row["state"] == "lost":
            raise RefuseError(NOT_YOURS, f"trial {trial} is not this worker's")
        return msgspec.json.decode(row["facts"], type=Facts).parameters

    def take_epoch(self, message: EpochDone, data: DataFacts, peak: Peak) -> Taken:
        """An epoch ended; `peak` is of the worker's chips.

        Raises:
            RefuseError: the trial is not this worker's, or it cannot be so.
        """
        trial = self._open(message)
        told = self.ledger.row(
            "SELECT message FROM epochs WHERE trial = ? AND attempt = ? AND epoch = ?",
            message.trial,
            message.attempt,
            message.epoch,
        )
        if told:
            if msgspec.json.decode(told["message"], type=EpochDone) != replace(message, delayed_s=0.0):
                raise RefuseError(WRONG, f"epoch {message.epoch} was told of before, and otherwise")
        else:
            self._refuse_impossible(message, trial, data)
            epoch = _event_of(message, self.ledger.now_s)
            self._refuse_too_fast(epoch, peak)
            self._keep_epoch(message, trial, epoch)
        self._answered(trial)
        return Taken()

    def take_end(self, message: TrialDone | TrialFailed) -> Taken:
        """A trial ended; a repeated message changes nothing.

        Raises:
            RefuseError: it is not this worker's, or has not had its epochs.
        """
        state: TrialState = "failed"
        if isinstance(message, TrialDone):
            state = "stopped" if message.stopped else "done"
        if self._state_of(message) == state:
            return Taken()
        trial = self._open(message)
        expected = {"done": trial["epochs"], "stopped": 1}.get(state, 0)
        if trial["epoch"] < expected:
            raise RefuseError(WRONG, f"it ends after {trial['epoch']} of {trial['epochs']} epochs")
        self.end(trial, state, one_line(message.reason) if isinstance(message, TrialFailed) else "")
        return Taken()

    def end(self, trial: sqlite3.Row, state: TrialState, reason: str = "") -> None:
        """End an attempt; a trial that was lost is queued again."""
        place = (trial["trial"], trial["attempt"])
        self.ledger.execute("UPDATE trials SET state = ? WHERE trial = ? AND attempt = ?", state, *place)
        is_again = state == "lost" and trial["attempt"] < MOST_ATTEMPTS
        accuracy = trial["accuracy"] if state in ("done", "stopped", "cut_off") else None
        self.proposals.ended(trial["proposal"], accuracy, is_again=is_again)
        self.ledger.tell(
            TrialEnd(
                self.ledger.now_s, *place, trial["worker"], state, trial["epoch"], trial["accuracy"], reason
            )
        )

    def _hand(self, worker: int, queued: sqlite3.Row) -> None:
        """A trial of this worker, made of a proposal."""
        ledger = self.ledger
        number = queued["trial"] or self.proposals.count_handed() + 1
        attempt = ledger.value("SELECT count(*) + 1 FROM trials WHERE trial = ?", number)
        round_number = self.round_of(worker)
        epochs = self.settings.epochs_of(round_number)
        self.proposals.handed(queued["proposal"], number)
        ledger.execute(
            "INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?, 'open', ?, 0, NULL)",
            *(number, attempt, queued["proposal"], worker, round_number, epochs, ledger.now_s),
        )
        proposed = msgspec.json.decode(queued["proposed"], type=Proposed)
        facts = msgspec.json.decode(queued["facts"], type=Facts)
        hyper = proposed.hyperparameters
        ledger.tell(
            TrialStart(
                time_s=ledger.now_s,
                trial=number,
                attempt=attempt,
                worker=worker,
                round=round_number,
                parent=proposed.parent,
                edits=facts.edits,
                layers=facts.layers,
                parameters=facts.parameters,
                forward_operations=facts.forward_operations,
                training_operations=facts.training_operations,
                batch_size=hyper.batch_size,
                dropout=hyper.dropout,
                kernel=hyper.kernel,
                epochs=epochs,
                tuned=proposed.tuned,
            )
        )

    def _refuse_too_fast(self, epoch: Epoch, peak: Peak) -> None:
        """As who judges the round would: of one such epoch none of the search would count."""
        attempt = self.ledger.account.trials[epoch.trial]
        operations = attempt.operations + attempt.operations_of(epoch)
        if problem := too_fast(attempt.start, epoch, operations, peak):
            raise RefuseError(WRONG, problem)

    def _keep_epoch(self, message: EpochDone, trial: sqlite3.Row, epoch: Epoch) -> None:
        place = (message.trial, message.attempt)
        text = encode(replace(message, delayed_s=0.0)).decode()
        self.ledger.execute("INSERT INTO epochs VALUES (?, ?, ?, ?)", *place, message.epoch, text)
        statement = "UPDATE trials SET epoch = ?, accuracy = ? WHERE trial = ? AND attempt = ?"
        best = max(message.accuracy, trial["accuracy"] or 0.0)
        self.ledger.execute(statement, message.epoch, best, *place)
        self.ledger.tell(epoch)

    def _refuse_impossible(self, message: EpochDone, trial: sqlite3.Row, data: DataFacts) -> None:
        """What no honest worker says: its figures are compared with what the controller has itself."""
        if message.epoch != trial["epoch"] + 1 or message.epoch > trial["epochs"]:
            after = f"epoch {trial['epoch']} of {trial['epochs']}"
            raise RefuseError(WRONG, f"epoch {message.epoch} does not follow {after}")
        for name in ("training_samples", "validation_samples"):
            samples, there_are = getattr(message, name), getattr(data, name)
            if samples != there_are:
                raise RefuseError(WRONG, f"{samples} {name} in an epoch; there are {there_are}")
        passed_s = self.ledger.now_s - trial["answered_s"]
        if message.seconds > passed_s * (1 + FASTER) + ON_ITS_WAY_S:
            raise RefuseError(
                WRONG, f"an epoch of {message.seconds:.1f} s, {passed_s:.1f} s after the answer before"
            )
        untold_s = passed_s - message.seconds - message.delayed_s
        if untold_s > passed_s * UNTOLD + UNTOLD_S:
            raise RefuseError(
                WRONG, f"of {passed_s:.1f} s since the answer before, {untold_s:.1f} s are in no epoch"
            )

    def _open(self, message: OfAttempt) -> sqlite3.Row:
        """The open trial that a message is of."""
        trial = self.open_of(message.worker)
        if trial is None or (trial["trial"], trial["attempt"]) != (message.trial, message.attempt):
            raise RefuseError(
                NOT_YOURS, f"trial {message.trial}, attempt {message.attempt}, is not this worker's"
            )
        return trial

    def _state_of(self, message: OfAttempt) -> str:
        """How an attempt of this worker ended; empty for one of another worker."""
        query = "SELECT state FROM trials WHERE trial = ? AND attempt = ? AND worker = ?"
        row = self.ledger.row(query, message.trial, message.attempt, message.worker)
        return str(row["state"]) if row else ""

    def _answered(self, trial: sqlite3.Row) -> None:
        """The worker is answered now: the next epoch begins no sooner."""
        statement = "UPDATE trials SET answered_s = ? WHERE trial = ? AND attempt = ?"
        self.ledger.execute(statement, self.ledger.now_s, trial["trial"], trial["attempt"])

    def are_all_handed(self) -> bool:
        """Whether no new trial is to be handed out."""
        most = self.settings.max_trials
        return most is not None and self.proposals.count_handed() >= most

    def count_open(self) -> int:
        """Trials that are being trained."""
        return int(self.ledger.value("SELECT count(*) FROM trials WHERE state = 'open'"))


def _event_of(message: EpochDone, time_s: float) -> Epoch:
    return Epoch(
        time_s=time_s,
        trial=message.trial,
        attempt=message.attempt,
        worker=message.worker,
        epoch=message.epoch,
        seconds=message.seconds,
        training_samples=message.training_samples,
        validation_samples=message.validation_samples,
        accuracy=message.accuracy,
        loss=message.loss,
    )
