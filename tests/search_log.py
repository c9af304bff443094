"""Controllers' logs of searches that never were, by the schema of `utils.search.events`: numbers by hand, no clock."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from utils.events import Event, EventName, format_line
from utils.search.account import Account, finished_values
from utils.search.events import (
    CONTROLLER_LOG,
    Epoch,
    SearchEnd,
    SearchRecord,
    SearchStart,
    TrialEnd,
    TrialStart,
    Worker,
    event_of,
)

BEGUN_MS = 1_700_000_000_000
TRAINING, VALIDATION = 1000, 100  # samples of an epoch
FORWARD, BOTH = 1_000_000, 3_000_000  # operations of a sample of the first architecture
DIGEST = "sha256:00ff"


def start(time_s: float = 0.0, **other: object) -> SearchStart:
    """A controller's first line."""
    values = {"search": "5e1a", "starts": 1, "away_s": 0.0, "workers": 2, "search_seconds": 600.0,
              "max_trials": None, "epochs": (2, 4), "seed": 42, **other}  # fmt: skip
    return SearchStart(time_s, **values)  # type: ignore[arg-type]


def worker(
    time_s: float, number: int, state: str = "joined", session: int = 1, waited_s: float = 0.0
) -> Worker:
    """A word on a worker of four chips."""
    return Worker(time_s, number, session, state, number, 4, "fp16", TRAINING, VALIDATION, DIGEST, waited_s)  # type: ignore[arg-type]


def trial(
    time_s: float, number: int, by: int, parent: int | None = None, attempt: int = 1, epochs: int = 2
) -> TrialStart:
    """A trial that is handed out."""
    edits = () if parent is None else (f"deepen relu_{number}",)
    return TrialStart(time_s, number, attempt, by, 1, parent, edits, 10 + number, 1000 * number, number * FORWARD,
                      number * BOTH, 448, 0.1, 3, epochs)  # fmt: skip


def epoch(
    time_s: float,
    of: int,
    by: int,
    number: int,
    accuracy: float = 0.8,
    seconds: float = 100.0,
    attempt: int = 1,
) -> Epoch:
    """An epoch's end."""
    return Epoch(time_s, of, attempt, by, number, seconds, TRAINING, VALIDATION, accuracy, 1 - accuracy)


def end(
    time_s: float,
    of: int,
    by: int,
    epochs: int = 2,
    accuracy: float | None = 0.8,
    state: str = "done",
    attempt: int = 1,
) -> TrialEnd:
    """A trial's end."""
    return TrialEnd(time_s, of, attempt, by, state, epochs, accuracy)  # type: ignore[arg-type]


def two_trials() -> list[SearchRecord]:
    """Two workers, a trial of two epochs on each, ended after 410 s; worker 1 has waited 210 s."""
    return [
        start(),
        worker(0.0, 0),
        worker(0.0, 1),
        trial(10.0, 1, 0),
        trial(10.0, 2, 1, parent=1),
        epoch(110.0, 1, 0, 1, 0.5),
        epoch(110.0, 2, 1, 1, 0.6),
        epoch(210.0, 2, 1, 2, 0.9),
        end(210.0, 2, 1, 2, 0.9),
        epoch(410.0, 1, 0, 2, 0.8, seconds=300.0),
        end(410.0, 1, 0, 2, 0.8),
        SearchEnd(410.0, "deadline", 2, 4),
        worker(410.0, 0, "left", waited_s=10.0),
        worker(410.0, 1, "left", waited_s=210.0),
    ]


class LongSearch:
    """A search as it goes: workers wait a second between two trials; accuracy grows with the family.

    Worker 1 is lost a quarter of the way, with its trial, which another takes over, and is started anew later.
    """

    def __init__(self, hours: float = 2.0, workers: int = 2, seed: int = 7) -> None:
        self._chance, self._limit, self._workers = random.Random(seed), 3600 * hours, workers
        self._free = [(1.0 + 0.1 * number, number) for number in range(workers)]
        self._best: dict[int, float] = {}
        self._lost: list[TrialStart] = []
        self._has_lost = False
        self._events: list[SearchRecord] = []

    def records(self) -> list[SearchRecord]:
        """All events, in their order."""
        number = 0
        while min(self._free)[0] < self._limit - 30:
            at, by = self._free.pop(self._free.index(min(self._free)))
            if self._lost and self._lost[0].time_s < at:
                self._run(replace(self._lost.pop(), time_s=at, worker=by, attempt=2))
            else:
                number += 1
                self._run(trial(at, number, by, self._parent(number), epochs=4))
        told = sorted(self._events, key=lambda each: each.time_s)
        epochs = sum(isinstance(each, Epoch) for each in told)
        begin = [start(workers=self._workers, search_seconds=self._limit, epochs=(4,))]
        joined = [worker(0.5, each) for each in range(self._workers)]
        left = [worker(self._limit, each, "left", 1 + (each == 1)) for each in range(self._workers)]
        return [*begin, *joined, *told, SearchEnd(self._limit, "deadline", number, epochs), *left]

    def _parent(self, number: int) -> int | None:
        return max(self._best, key=lambda each: self._best[each] + self._chance.random() / 20, default=None)

    def _run(self, own: TrialStart) -> None:
        """A trial of four epochs, as far as it comes."""
        at, number, by, attempt = own.time_s, own.trial, own.worker, own.attempt
        is_lost = by == 1 and not self._has_lost and at > self._limit / 4
        seconds, accuracy, done = 60 + self._chance.random() * 30, 0.0, 0
        top = min(0.92, 0.55 + 0.03 * len(self._best) ** 0.5 + self._chance.random() / 10)
        self._events.append(own)
        while done < (2 if is_lost else 4) and at + seconds < self._limit:
            at, done = at + seconds, done + 1
            accuracy = top * (1 - 0.5 ** (done + 1))
            self._events.append(epoch(at, number, by, done, accuracy, seconds, attempt))
        reached = accuracy if done else None
        if is_lost:
            self._has_lost = True
            self._lost.append(replace(own, time_s=at + 40))
            self._events += [worker(at + 40, by, "lost"), end(at + 40, number, by, done, reached, "lost")]
            self._events.append(worker(at + 400, by, session=2))
            self._free.append((at + 401, by))
            return
        state, at = ("done", at) if done == 4 else ("cut_off", self._limit)
        self._events.append(end(at, number, by, done, reached, state, attempt))
        self._best[number] = accuracy
        self._free.append((at + 1, by))


def account_of(records: Iterable[SearchRecord]) -> Account:
    """What they come to."""
    account = Account()
    for record in records:
        account.take(record)
    return account


def lines_of_search(
    records: Iterable[SearchRecord], finished: bool = True, begun_ms: int = BEGUN_MS
) -> list[str]:
    """The lines of a controller's log."""
    told = list(records)
    events = [event_of(record, begun_ms + round(1000 * record.time_s)) for record in told]
    if finished:
        account = account_of(told)
        values = finished_values(account)
        events.append(Event(EventName.FINISHED, values, begun_ms + round(1000 * account.now_s)))
    return [format_line(event) for event in events]


def write_search(folder: Path, records: Iterable[SearchRecord], finished: bool = True) -> Path:
    """A node's folder with the controller's log."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CONTROLLER_LOG
    path.write_text("\n".join(["a word of a library", *lines_of_search(records, finished), ""]))
    return path
