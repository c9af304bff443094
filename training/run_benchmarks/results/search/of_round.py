"""A round's search as its judge sees it: in the place of what a training's rank 0 would say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from run_benchmarks.results.planned import PlannedCase
from run_benchmarks.results.power import clock_doubt, training_window
from run_benchmarks.results.rank_logs import RankLogs
from run_benchmarks.results.search.contradictions import contradictions
from run_benchmarks.results.search.figures import search_figures, series_of
from run_benchmarks.results.search.log import SearchLog, read_search
from run_benchmarks.results.search.places import Places
from run_benchmarks.results.search.record import BestTrial, SearchResult
from run_benchmarks.results.search.rules import broken_rules, is_trial_run, remarks
from utils.events import Event, EventName
from utils.figures import Figure, Peak
from utils.parameters import SEARCH_SECONDS
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.search.account import Account, Trial
from utils.search.events import CONTROLLER_LOG, Epoch, TrialStart

MOST_CONTRADICTIONS = 5  # that are named
_BEFORE = frozenset(
    name.value
    for name in (EventName.INIT_START, EventName.HOOKS, EventName.INIT_EVALUATION, EventName.INIT_END)
)


@dataclass(frozen=True)
class RoundSearch:
    """The search of a round of `case`."""

    case: PlannedCase
    log: SearchLog

    @property
    def account(self) -> Account:
        """What it comes to."""
        return self.log.account

    @property
    def differs(self) -> Mapping[str, Any] | None:
        """What makes it open: as the plan has it, and that it was configured for less than the rules ask."""
        parameters = self.case.parameters
        own = {SEARCH_SECONDS: parameters[SEARCH_SECONDS]} if is_trial_run(parameters) else {}
        return {**(self.case.differs or {}), **own} if own else self.case.differs

    def in_place_of(self, logs: RankLogs) -> RankLogs:
        """The ranks' logs, of which what was before the training counts, once; the rest is the controller's to say."""
        before = {event.name: event for event in reversed(logs.events) if event.name in _BEFORE}
        bounds = list(bounds_of(self.log))
        for phases in logs.phases.values():
            for event in bounds:
                phases.take(event)
        events = [*sorted(before.values(), key=logs.events.index), *bounds, *self.log.finished]
        finished = {0: self.log.finishes} if self.log.finishes else {}
        return replace(logs, events=events, finished=finished, met=None)

    def figures(
        self, sampled: Mapping[str, Figure], nodes: int, failure: Failure | None
    ) -> dict[str, Figure]:
        """Its figures, none of one that never began; `sampled` are those of telemetry, of so many nodes."""
        if self.account.start is None:
            return {}
        reason = "until the search was cut off" if failure or not self.account.end else ""
        energy, doubt = sampled.get("energy"), self._clock_doubt()
        if energy and doubt:  # the wall clock is that by which it was sampled
            energy = replace(energy, value=None, source=doubt)
        return search_figures(self.account, energy, nodes, "; ".join(filter(None, (reason, doubt))))

    def _clock_doubt(self) -> str:
        """What its host's wall clock says of its time, where that is another: one of the two is wrong."""
        events = [*bounds_of(self.log), *self.log.finished]
        window = training_window(events)
        return "" if isinstance(window, str) else clock_doubt(window, events)

    def fault(self, host: str, peak: Peak) -> Failure | None:
        """Why a search that has ended well bears no result, if it does not; `host` is its controller's."""
        problems = contradictions(self.case, self.log, peak, MOST_CONTRADICTIONS)
        if problems:
            remedy = f"read {CONTROLLER_LOG}: what its controller says does not add up"
            return _invalid(FailureClass.INCONSISTENT_RESULT, host, problems, remedy)
        broken = [] if is_trial_run(self.case.parameters) else list(broken_rules(self.account))
        remedy = "let it search for longer, or on more workers; docs/search.md has the rules"
        return _invalid(FailureClass.SEARCH_NOT_VALID, host, broken, remedy) if broken else None

    def notes(self) -> list[str]:
        """What goes with the figures."""
        return list(remarks(self.account, self.case.parameters, Places.of(self.case).workers))

    def summary(self) -> SearchResult | None:
        """What stands in the result; None where its controller never began."""
        account, start = self.account, self.account.start
        worker = next((each.last for each in account.workers.values()), None)
        if start is None or worker is None:
            return None
        return SearchResult(
            workers=len(account.workers),
            ranks=len(account.workers) * Places.of(self.case).ranks,
            precision=", ".join(account.precisions),
            data_digest=worker.data_digest,
            training_samples=worker.training_samples,
            validation_samples=worker.validation_samples,
            search_seconds=start.search_seconds,
            starts=start.starts,
            is_trial_run=is_trial_run(self.case.parameters),
            broken_rules=tuple(broken_rules(account)),
            series=tuple(series_of(account)),
            best=_best(account, account.best),
        )


def bounds_of(log: SearchLog) -> Iterator[Event]:
    """The first trial's start and the last epoch's end, as those of a training."""
    starts = [told.time_ms for told in log.told if isinstance(told.record, TrialStart)]
    ends = [told.time_ms for told in log.told if isinstance(told.record, Epoch)]
    if starts and ends:
        yield Event(EventName.TRAIN_START.value, {}, starts[0])
        yield Event(EventName.TRAIN_END.value, {}, ends[-1])


def search_of(case: PlannedCase, folders: Sequence[Path], followed: Path | None) -> RoundSearch | None:
    """The search of a round in these node folders, if its case is one; `followed` stands in for the log."""
    if not case.roles or not folders:
        return None
    return RoundSearch(case, read_search(followed or folders[0] / CONTROLLER_LOG))


def _best(account: Account, trial: Trial | None) -> BestTrial | None:
    if trial is None or trial.accuracy is None:
        return None
    start = trial.start
    return BestTrial(
        trial=start.trial,
        accuracy=trial.accuracy,
        layers=start.layers,
        parameters=start.parameters,
        forward_operations=start.forward_operations,
        training_operations=start.training_operations,
        ancestors=len(ancestors(account, start)),
    )


def ancestors(account: Account, start: TrialStart) -> list[TrialStart]:
    """The trials that an architecture was made of, the nearest first."""
    line: list[TrialStart] = []
    while start.parent in account.trials and start.parent < start.trial:
        start = account.trials[start.parent].start
        line.append(start)
    return line


def _invalid(kind: FailureClass, host: str, problems: Sequence[str], remedy: str) -> Failure:
    return Failure(Verdict.INVALID, Stage.JUDGE, kind, host, "; ".join(problems), "", remedy)
