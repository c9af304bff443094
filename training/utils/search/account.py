"""What a search has come to, by its controller's events as they come: the one account that all figures are made of.

An epoch's operations are its samples times those of one: of the training, forward and backward, and of the validation,
forward alone. Of a trial that was handed out again the last attempt counts. The score is the sum of all epochs'
operations over the time from the first trial's start to the last epoch's end.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from utils.numbers import rate
from utils.parameters import MeasurementSettings
from utils.search.events import (
    MOST_EVENTS,
    OF_WORKERS,
    Epoch,
    SearchEnd,
    SearchRecord,
    SearchResumed,
    SearchStart,
    TrialEnd,
    TrialStart,
    Worker,
)

_UNHEARD = ("lost", "left", "cut_off")  # how a worker or its trial may end without a word of that worker


@dataclass
class Trial:
    """A trial's latest attempt. accuracy: the best that it came to; operations: what all of its epochs computed."""

    start: TrialStart
    epochs: list[Epoch] = field(default_factory=list)
    end: TrialEnd | None = None
    accuracy: float | None = None
    operations: int = 0

    def take(self, epoch: Epoch) -> bool:
        """One more epoch; whether none before was as good."""
        self.epochs.append(epoch)
        self.operations += self.operations_of(epoch)
        if self.accuracy is not None and epoch.accuracy <= self.accuracy:
            return False
        self.accuracy = epoch.accuracy
        return True

    def is_before(self, start: TrialStart) -> bool:
        """Whether this attempt was lost, and the other is the next one."""
        return self.state == "lost" and start.attempt == self.start.attempt + 1

    @property
    def state(self) -> str:
        """How it ended, or that it runs."""
        return self.end.state if self.end else "running"

    def operations_of(self, epoch: Epoch) -> int:
        """What one of its epochs computed."""
        start = self.start
        training = epoch.training_samples * start.training_operations
        return training + epoch.validation_samples * start.forward_operations


@dataclass
class Span:
    """A part of a worker's time, in seconds of the search's clock; None where it goes on.

    trial: what it worked on; None of one in which it was there. state, reason: how its trial ended, and why.
    """

    start_s: float
    end_s: float | None = None
    trial: TrialStart | None = None
    state: str = ""
    reason: str = ""


class Spans(list[Span]):
    """Spans one behind the other; the sum of those that have ended is kept, as it is asked for at each event."""

    def __init__(self) -> None:
        super().__init__()
        self._ended_s = 0.0

    @property
    def open(self) -> Span | None:
        """The last one, where it goes on."""
        return self[-1] if self and self[-1].end_s is None else None

    def end(self, time_s: float, state: str = "", reason: str = "") -> None:
        """The last one ends, where it goes on."""
        if span := self.open:
            span.end_s, span.state, span.reason = max(span.start_s, time_s), state, reason
            self._ended_s += span.end_s - span.start_s

    def seconds(self, now_s: float) -> float:
        """All of them together until now, which is behind the ends of those that have ended."""
        return self._ended_s + (max(0.0, now_s - self.open.start_s) if self.open else 0.0)


@dataclass
class OfWorker:
    """A worker: what was heard of it last, when it was there, and when it worked on which trial.

    silent_since_s: the end of the controller that heard of it last, where none has since.
    """

    last: Worker
    there: Spans = field(default_factory=Spans)
    worked: Spans = field(default_factory=Spans)
    silent_since_s: float | None = None

    @property
    def is_there(self) -> bool:
        """Whether it has joined and was not lost since, nor left."""
        return self.there.open is not None

    @property
    def trial(self) -> TrialStart | None:
        """What it works on."""
        return self.worked.open.trial if self.worked.open else None


@dataclass
class Account:
    """Takes the events of a search as they come; those behind a new start replace all before.

    begun_s, last_epoch_s, now_s: when the first trial began, the last counted epoch ended, the last event was.
    ended: how often attempts ended, by how. A trial is handed out again where it was lost, and not otherwise.
    """

    start: SearchStart | None = None
    end: SearchEnd | None = None
    trials: dict[int, Trial] = field(default_factory=dict)
    workers: dict[int, OfWorker] = field(default_factory=dict)
    _heard: dict[int, OfWorker] = field(default_factory=dict)  # those of them that are not silent
    begun_s: float | None = None
    last_epoch_s: float | None = None
    now_s: float = 0.0
    operations: int = 0
    epochs: int = 0
    events: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    # -accuracy, the epochs until then, whose; on top the best. Attempts that were lost go when they come to the top.
    _best: list[tuple[float, int, Trial]] = field(default_factory=list)

    def take(self, record: SearchRecord) -> None:
        """Take in the next event; one that fits nothing before it changes nothing, and none behind MOST_EVENTS does."""
        if self.events >= MOST_EVENTS:
            return
        if isinstance(record, SearchStart):
            vars(self).update(vars(Account(record)))
        self.events += 1
        self.now_s = max(self.now_s, record.time_s)
        if isinstance(record, OF_WORKERS):
            self._hear_of(record)
        if isinstance(record, Worker):
            self._worker(record)
        elif isinstance(record, TrialStart):
            self._trial_start(record)
        elif isinstance(record, Epoch):
            self._epoch(record)
        elif isinstance(record, TrialEnd):
            self._trial_end(record)
        elif isinstance(record, SearchResumed):
            for worker in self._heard.values():
                worker.silent_since_s = record.seen_s
            self._heard.clear()
        elif isinstance(record, SearchEnd):
            self.end = record

    def _hear_of(self, record: Worker | TrialStart | Epoch | TrialEnd) -> None:
        """What its worker has brought about, and not its silence or the end of the search."""
        worker = self.workers.get(record.worker)
        if worker and not (isinstance(record, (Worker, TrialEnd)) and record.state in _UNHEARD):
            worker.silent_since_s = None
            self._heard[record.worker] = worker

    def _worker(self, record: Worker) -> None:
        if record.worker not in self.workers:
            self.workers[record.worker] = self._heard[record.worker] = OfWorker(record)
        worker = self.workers[record.worker]
        worker.last = record
        if record.state in ("lost", "left"):
            worker.there.end(self._until(record.time_s, worker))
        elif not worker.is_there:
            worker.there.append(Span(record.time_s))

    def _trial_start(self, record: TrialStart) -> None:
        earlier = self.trials.get(record.trial)
        if earlier and not earlier.is_before(record):
            return
        self.trials[record.trial] = Trial(record)
        if earlier:
            self.operations -= earlier.operations
            self._forget_replaced()
        self.begun_s = record.time_s if self.begun_s is None else self.begun_s
        if record.worker in self.workers:
            self.workers[record.worker].worked.append(Span(record.time_s, None, record))

    def _forget_replaced(self) -> None:
        while self._best and self.trials[self._best[0][2].start.trial] is not self._best[0][2]:
            heapq.heappop(self._best)

    def _of(self, record: Epoch | TrialEnd) -> Trial | None:
        """The trial whose attempt an event is of."""
        trial = self.trials.get(record.trial)
        return trial if trial and trial.start.attempt == record.attempt else None

    def _epoch(self, record: Epoch) -> None:
        self.epochs += 1
        if trial := self._of(record):
            if trial.take(record):
                heapq.heappush(self._best, (-record.accuracy, self.epochs, trial))
            self.operations += trial.operations_of(record)
            self.last_epoch_s = record.time_s

    def _trial_end(self, record: TrialEnd) -> None:
        self.ended[record.state] += 1
        trial, worker = self._of(record), self.workers.get(record.worker)
        if trial:
            trial.end = record
        if worker:
            worker.worked.end(self._until(record.time_s, worker), record.state, record.reason)

    def _until(self, time_s: float, worker: OfWorker) -> float:
        """A moment, or where that came before: the end of the search, or of what was heard of a worker."""
        ends = (time_s, self.end.time_s if self.end else None, worker.silent_since_s)
        return min(end_s for end_s in ends if end_s is not None)

    @property
    def best(self) -> Trial | None:
        """The trial with the best accuracy, of equal ones that which came to it first; None before the first epoch."""
        return self._best[0][2] if self._best else None

    @property
    def seconds(self) -> float | None:
        """From the first trial's start to the last epoch's end."""
        if self.begun_s is None or self.last_epoch_s is None:
            return None
        return self.last_epoch_s - self.begun_s

    @property
    def score(self) -> float | None:
        """Operations a second over all that time; None before the first epoch's end."""
        return rate(self.operations, self.seconds)

    @property
    def ranks(self) -> int:
        """Chips of all workers that ever joined."""
        return sum(worker.last.ranks for worker in self.workers.values())

    @property
    def precisions(self) -> list[str]:
        """What its workers trained in."""
        return sorted({worker.last.precision for worker in self.workers.values()})

    def waiting(self) -> float | None:
        """The share of the time in which chips were there that they had no trial, 0 to 1; None where none were."""
        there = worked = 0.0
        for worker in self.workers.values():
            now_s = self._until(self.now_s, worker)
            there += worker.last.ranks * worker.there.seconds(now_s)
            worked += worker.last.ranks * worker.worked.seconds(now_s)
        return max(0.0, 1 - worked / there) if there else None

    def in_time(self) -> Iterator[tuple[float, int, float]]:
        """Of each counted epoch, in the order of their ends: seconds since the first trial's start, all operations
        until then, and the best accuracy until then."""
        epochs = ((epoch, trial) for trial in self.trials.values() for epoch in trial.epochs)
        operations, accuracy = 0, 0.0
        for epoch, trial in sorted(epochs, key=lambda pair: pair[0].time_s):
            operations += trial.operations_of(epoch)
            accuracy = max(accuracy, epoch.accuracy)
            yield epoch.time_s - (self.begun_s or 0.0), operations, accuracy


def finished_values(account: Account) -> dict[str, Any]:
    """What the controller's FINISHED says: the sums from which a reader of its log sees whether that is whole.

    Its e2e_time is that of its last start.
    """
    best, begun_s = account.best, account.start.time_s if account.start else 0.0
    return {
        "kind": MeasurementSettings.kind,
        "e2e_time": account.now_s - begun_s,
        "world_size": account.ranks,
        "precision": ", ".join(account.precisions),
        "trials": len(account.trials),
        "epochs": account.epochs,
        "operations": account.operations,
        "search_time": account.seconds,
        "score": account.score,
        "accuracy": best.accuracy if best else None,
    }
