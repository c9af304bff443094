"""Whether what a search's controller says adds up: with itself, with what its chips can do, with its last word.

What cannot have been makes the round INVALID. Who wants to deceive can write lines that add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.search.log import SearchLog
from run_benchmarks.results.search.places import Places
from utils.figure_records import Peak
from utils.numbers import number_in, shown
from utils.parameters import SEARCH_SECONDS
from utils.search.account import Trial, finished_values
from utils.search.events import (
    LONGEST_TEXT,
    Epoch,
    SearchEnd,
    SearchRecord,
    SearchResumed,
    SearchStart,
    TrialEnd,
    TrialStart,
    Worker,
)
from utils.search.limits import SLACK_S, too_fast
from utils.text_files import shortened

SLACK = 0.01  # a clock may run so much faster than another
LATE_S = 30.0  # behind the end of its time a trial may still be handed out by a controller that is busy
OF_LAST_WORD = ("world_size", "trials", "epochs", "operations", "search_time", "score", "accuracy")
CLOCK_FACTOR = 20.0  # a wall clock that was set explains less


@dataclass
class _Open:
    """A trial's latest attempt, as far as it has come."""

    start: TrialStart
    at_s: float
    epochs: int = 0
    best: float | None = None
    operations: int = 0
    state: str = ""


@dataclass
class _Course:
    """A search as it goes by. planned: what the plan says of it, where it does."""

    planned: Mapping[str, Any]
    places: Places
    peak: Peak
    start: SearchStart | None = None
    now_s: float = 0.0
    away_s: float = 0.0
    workers: dict[int, Worker] = field(default_factory=dict)
    there: set[int] = field(default_factory=set)
    busy: dict[int, int] = field(default_factory=dict)
    trials: dict[int, _Open] = field(default_factory=dict)
    epochs: int = 0
    end: SearchEnd | None = None

    def take(self, record: SearchRecord) -> Iterator[str]:
        """What is wrong with the next event."""
        if record.time_s < self.now_s - SLACK_S:
            yield f"time goes back from {shown(self.now_s)} s to {shown(record.time_s)} s"
        if not isinstance(record, SearchStart):  # what comes behind it was before a later start
            self.now_s = max(self.now_s, record.time_s)
        if self.start is None and not isinstance(record, SearchStart):
            yield "it stands before SEARCH_START"
        if self.end and not isinstance(record, (Worker, SearchStart)):
            yield "it stands behind SEARCH_END"
        yield from _CHECKS[type(record)](self, record)

    def begin(self, record: SearchStart) -> Iterator[str]:
        """The first event: what a search is to be is the plan's to say."""
        self.start = record
        own = {
            "workers": record.workers,
            SEARCH_SECONDS: record.search_seconds,
            "max_trials": record.max_trials or 0,
            "epochs_by_round": record.epochs,
        }
        for name, value in own.items():
            by_plan = self.planned.get(name, value)
            by_plan = tuple(by_plan) if isinstance(by_plan, list) else by_plan
            if value != by_plan:
                yield f"{name} is {value}, and by the plan {shortened(str(by_plan), LONGEST_TEXT)}"

    def resumed(self, record: SearchResumed) -> Iterator[str]:
        """Another controller goes on."""
        self.away_s += record.time_s - record.seen_s
        if self.start and not -SLACK_S <= self.away_s <= self.start.away_s + SLACK_S:
            yield f"no controller was there for {shown(self.away_s)} s of {shown(self.start.away_s)} s"

    def worker(self, record: Worker) -> Iterator[str]:
        """One comes or goes."""
        first = next(iter(self.workers.values()), record)
        if _data(record) != _data(first):
            yield f"worker {record.worker} has other data than worker {first.worker}"
        if record.precision != first.precision:
            yield f"worker {record.worker} trains in {record.precision}, worker {first.worker} in {first.precision}"
        yield from self._other_chips(record)
        if record.state in ("lost", "left"):
            if record.worker not in self.workers:
                yield f"worker {record.worker} is {record.state} and never came"
            self.there.discard(record.worker)
        else:
            self.there.add(record.worker)
        if record.waited_s > record.time_s + SLACK_S:
            yield f"worker {record.worker} has waited {shown(record.waited_s)} s of {shown(record.time_s)} s"
        self.workers[record.worker] = record

    def _other_chips(self, record: Worker) -> Iterator[str]:
        """It has the chips that the plan gives its number."""
        number, places = record.worker, self.places
        if number >= places.workers:
            yield f"worker {number} is none of the plan's {places.workers}, counted from 0"
        elif record.node_rank != places.node_of(number):
            yield f"worker {number} is on node {record.node_rank}, and by the plan on {places.node_of(number)}"
        if record.ranks != places.ranks:
            yield f"worker {number} has {record.ranks} ranks, and by the plan {places.ranks}"

    def trial_start(self, record: TrialStart) -> Iterator[str]:
        """A trial is handed out."""
        number, earlier = record.trial, self.trials.get(record.trial)
        if earlier is None and (record.attempt != 1 or number != len(self.trials) + 1):
            yield f"trial {number}, attempt {record.attempt}, is behind {len(self.trials)} trials"
        if earlier and (earlier.state != "lost" or record.attempt != earlier.start.attempt + 1):
            yield f"trial {number} is handed out again, and was not lost"
        if earlier and _architecture(earlier.start) != _architecture(record):
            yield f"trial {number} has another architecture at its next attempt"
        if record.parent is not None and (record.parent >= number or record.parent not in self.trials):
            yield f"trial {number} is made of trial {record.parent}, which was not handed out before"
        if record.worker not in self.there or record.worker in self.busy:
            yield f"trial {number} goes to worker {record.worker}, which is not there or has another"
        if not 0 < record.forward_operations < record.training_operations:
            yield f"trial {number} has {record.forward_operations} operations forward of {record.training_operations}"
        if self.start and record.time_s - self.start.away_s > self.start.search_seconds + LATE_S:
            yield f"trial {number} begins behind the search's {self.start.search_seconds:g} s"
        self.trials[number] = _Open(record, record.time_s)
        self.busy[record.worker] = number

    def epoch(self, record: Epoch) -> Iterator[str]:
        """An epoch has ended."""
        self.epochs += 1
        trial = self._open(record)
        if trial is None:
            yield f"epoch {record.epoch} is of trial {record.trial}, attempt {record.attempt}, which does not run there"
            return
        if record.epoch != trial.epochs + 1 or record.epoch > trial.start.epochs:
            yield f"epoch {record.epoch} of trial {record.trial} is behind {trial.epochs} of {trial.start.epochs}"
        worker = self.workers.get(record.worker)
        own = (record.training_samples, record.validation_samples)
        if worker and own != (worker.training_samples, worker.validation_samples):
            yield f"an epoch of trial {record.trial} has {own[0]} and {own[1]} samples, which are not the data's"
        passed = record.time_s - trial.at_s
        if record.seconds * (1 - SLACK) - SLACK_S > passed:
            yield f"an epoch of trial {record.trial} took {shown(record.seconds)} s, of {shown(passed)} s that passed"
        trial.operations += Trial(trial.start).operations_of(record)
        peak = replace(self.peak, chips=self.places.ranks)
        yield from filter(None, [too_fast(trial.start, record, trial.operations, peak)])
        trial.at_s, trial.epochs = record.time_s, record.epoch
        trial.best = max(record.accuracy, trial.best or 0.0)

    def trial_end(self, record: TrialEnd) -> Iterator[str]:
        """An attempt has ended."""
        trial = self._open(record)
        if trial is None:
            yield f"trial {record.trial}, attempt {record.attempt}, ends and does not run there"
            return
        if (record.epochs, record.accuracy) != (trial.epochs, trial.best):
            told = f"{record.epochs} epochs and an accuracy of {record.accuracy}"
            yield f"trial {record.trial} ends with {told}, but had {trial.epochs} and {trial.best}"
        trial.state = record.state
        del self.busy[record.worker]

    def search_end(self, record: SearchEnd) -> Iterator[str]:
        """It is over."""
        self.end = record
        if self.busy:
            yield f"it ends while {len(self.busy)} trials run"
        if (record.trials, record.epochs) != (len(self.trials), self.epochs):
            told = f"{record.trials} trials and {record.epochs} epochs"
            yield f"it ends with {told}, but the log has {len(self.trials)} and {self.epochs}"

    def _open(self, record: Epoch | TrialEnd) -> _Open | None:
        """The attempt that an event is of, if it runs on that worker."""
        trial = self.trials.get(record.trial)
        runs_there = self.busy.get(record.worker) == record.trial
        return trial if trial and runs_there and trial.start.attempt == record.attempt else None


_CHECKS: Mapping[type[SearchRecord], Callable[..., Iterator[str]]] = {
    SearchStart: _Course.begin,
    SearchResumed: _Course.resumed,
    Worker: _Course.worker,
    TrialStart: _Course.trial_start,
    Epoch: _Course.epoch,
    TrialEnd: _Course.trial_end,
    SearchEnd: _Course.search_end,
}


def _data(worker: Worker) -> tuple[object, ...]:
    return (worker.training_samples, worker.validation_samples, worker.data_digest)


def _architecture(start: TrialStart) -> TrialStart:
    return replace(start, time_s=0.0, attempt=1, worker=0, round=1)


def contradictions(case: PlannedCase, log: SearchLog, peak: Peak, most: int) -> list[str]:
    """What does not add up in a search that ended well, the first of each kind of event; nothing where all does.

    Args:
        peak: of one of its chips.
    """
    problems = [f"an event is none: {problem}" for problem in log.wrong]
    places = Places.of(case)
    course = _Course({**case.parameters, "workers": places.workers}, places, peak)
    for told in log.told:
        problems += [f"{told.record.event.value}: {problem}" for problem in course.take(told.record)]
        if len(problems) >= most:
            return problems
    if course.end is None:
        problems.append("there is no SEARCH_END")
    return [*problems, *_clocks(log), *_last_word(log)]


def _clocks(log: SearchLog) -> Iterator[str]:
    """The search's clock and that of its host tell of the same time."""
    starts = [each for each in log.told if isinstance(each.record, TrialStart)]
    epochs = [each for each in log.told if isinstance(each.record, Epoch)]
    if not starts or not epochs:
        return
    first, last = starts[0], epochs[-1]
    own, wall = last.record.time_s - first.record.time_s, (last.time_ms - first.time_ms) / 1000
    if wall - own > SLACK_S * 4 and wall > CLOCK_FACTOR * own:
        yield f"by its own clock it took {shown(own)} s, by that of its host {shown(wall)} s"


def _last_word(log: SearchLog) -> Iterator[str]:
    """FINISHED repeats what the events come to."""
    said, own = log.finished[-1].value if log.finished else {}, finished_values(log.account)
    for name in OF_LAST_WORD:
        value, expected = number_in(said, name), own[name]
        if not math.isclose(value or 0.0, expected or 0.0, rel_tol=1e-9):
            yield f"{name} of FINISHED is {value}, but the events come to {expected}"
    if said.get("precision") != own["precision"]:
        what = shortened(str(said.get("precision")), LONGEST_TEXT)
        yield f"precision of FINISHED is {what}, but the events come to {own['precision']}"
