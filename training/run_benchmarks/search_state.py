"""What a search that goes on has come to: taken from its controller's events, and shown."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from run_benchmarks.reading import parsed
from utils.errors import FlagPerfError
from utils.events import Event
from utils.search.account import Account
from utils.search.events import MOST_EVENTS, RECORDS, SearchRecord, TrialEnd, TrialStart, Worker

TERA = 1e12


@dataclass(frozen=True)
class SearchNow:
    """A moment of a search. running: trials; ended: attempts, by how. score: operations/s, None before the first epoch.

    workers: those that are there, of so many `planned`. waiting: the share of their chips' time without a trial.
    elapsed_s, left_s: by the search's clock, as of the last event. trial: of the best accuracy. is_over: it has ended.
    """

    trials: int
    running: int
    ended: Mapping[str, int]
    epochs: int
    accuracy: float | None
    trial: int | None
    score: float | None
    workers: int
    planned: int
    waiting: float | None
    elapsed_s: float
    left_s: float
    is_over: bool = False

    @property
    def part(self) -> float:
        """How much of its time has gone, 0 to 1."""
        whole = self.elapsed_s + self.left_s
        return self.elapsed_s / whole if whole else 0.0


class SearchState:
    """Takes the events of a search's controller; anything else in its log is passed over.

    most_workers: the plan's; what is said of further ones, which no launcher has started, is passed over too.
    """

    def __init__(self, most_workers: int = MOST_EVENTS) -> None:
        self.account, self.most_workers = Account(), most_workers

    def take(self, event: Event) -> None:
        """The next event of the controller's log."""
        kind = RECORDS.get(event.name)
        if kind:
            with suppress(FlagPerfError):  # who judges the log says what is wrong with it
                record = parsed(kind, event.value, event.name)
                if not isinstance(record, Worker) or record.worker < self.most_workers:
                    self.account.take(_without_texts(record))

    def now(self) -> SearchNow | None:
        """What it has come to; None before its controller has said anything."""
        account = self.account
        start, best = account.start, account.best
        if start is None:
            return None
        elapsed_s = account.now_s - start.away_s
        workers = account.workers.values()
        return SearchNow(
            trials=len(account.trials),
            running=sum(worker.trial is not None for worker in workers),
            ended=dict(account.ended),
            epochs=account.epochs,
            accuracy=best.accuracy if best else None,
            trial=best.start.trial if best else None,
            score=account.score,
            workers=sum(worker.is_there for worker in workers),
            planned=max(start.workers, len(workers)),
            waiting=account.waiting(),
            elapsed_s=elapsed_s,
            left_s=max(0.0, start.search_seconds - elapsed_s),
            is_over=account.end is not None,
        )

    def of_node(self, node_rank: int) -> str:
        """What the workers of a node do, in words; empty of one that none has joined from."""
        workers = (worker for worker in self.account.workers.values() if worker.last.node_rank == node_rank)
        words = []
        for worker in workers:
            trial = worker.trial
            if trial and worker.is_there:
                done = len(self.account.trials[trial.trial].epochs)
                words.append(f"trial {trial.trial}, epoch {min(done + 1, trial.epochs)} of {trial.epochs}")
            else:
                words.append(worker.last.state if not worker.is_there else "waiting for a trial")
        return "; ".join(words)


def _without_texts(record: SearchRecord) -> SearchRecord:
    """What is held of an event: a trial's own texts, which nothing shows, would fill the memory."""
    if isinstance(record, TrialStart):
        return replace(record, edits=())
    return replace(record, reason="") if isinstance(record, TrialEnd) else record
