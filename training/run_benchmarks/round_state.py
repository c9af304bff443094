"""What is known of a round while it runs, and the result that it is made into when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from run_benchmarks.failures import log_traceback, unexpected
from run_benchmarks.frameworks.base import Framework
from run_benchmarks.names import Node
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.results.evidence import explain
from run_benchmarks.results.judge import Judgement, judge, kind_of
from run_benchmarks.results.round_result import RoundResult, continuation_notes, saving_notes, write_json
from run_benchmarks.run_log import LOGGER
from run_benchmarks.session import Session
from run_benchmarks.stages.watch import Outcome
from run_benchmarks.training_state import TrainingState
from run_benchmarks.transports.base import TransportError
from utils.errors import FlagPerfError
from utils.figures import DEFINITIONS, Figure
from utils.records import Failure, Stage, Verdict


@dataclass
class RoundState:
    """What is known of a round while it runs.

    case: the case on the hosts that the round was given; nodes: none before it has them.
    started: ISO 8601; time_s: from the moment it had its hosts to the one when its logs were home.
    lost: hosts that are known to be out of reach; not_collected: node ranks whose logs still lie on their host.
    """

    case: CasePlan
    number: int
    started: str
    nodes: tuple[Node, ...] = ()
    framework: Framework | None = None
    time_s: float = 0.0
    stage: Stage = Stage.ACQUIRE
    failure: Failure | None = None
    outcome: Outcome | None = None
    times: dict[str, float] = field(default_factory=dict)
    tag: str = ""
    images: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    not_collected: set[int] = field(default_factory=set)
    training: TrainingState = field(default_factory=TrainingState)

    def note_error(self, error: Exception) -> None:
        """An error that no stage knows: it fails the round, unless something before it did."""
        log_traceback(self.stage, error)
        failure = unexpected(self.stage, error)
        if self.failure or (self.outcome and not self.outcome.all_ended_well):
            self.notes.append(f"at the stage {self.stage.value}: {failure.message}")
        else:
            self.failure = failure

    def note_lost(self, host: str, error: FlagPerfError) -> None:
        """Remember that `host` is out of reach, if that is what `error` says."""
        if isinstance(error, TransportError):
            self.lost.add(host)


def round_result(session: Session, state: RoundState) -> RoundResult:
    """The result of a round that has ended.

    An error in judging is the round's failure, so that the rounds after it are not lost.
    """
    case = state.case
    try:
        judgement = _judged(session, state)
    except Exception as error:
        state.stage = Stage.JUDGE
        state.note_error(error)
        judgement = judge(case, [], state.failure or unexpected(Stage.JUDGE, error))
    continued = judgement.continued and {"run": session.plan.continue_from, **judgement.continued}
    more = (*continuation_notes(continued), *saving_notes(judgement.facts))
    return RoundResult(
        case=case.settings.name,
        round=state.number,
        verdict=judgement.verdict,
        figures=_with_round_time(judgement.figures, state.time_s),
        failure=judgement.failure,
        times=state.times,
        started=state.started,
        hosts=tuple(node.host for node in state.nodes),
        image=state.tag,
        images=state.images,
        facts=judgement.facts,
        notes=(*state.notes, *judgement.notes, *more),
        rules=judgement.rules,
        continued=continued,
        kind=kind_of(case),
    )


def written(result: RoundResult, folder: Path) -> RoundResult:
    """`result`, once it stands in `folder`; where it cannot be written there, one that says so.

    It then counts as failed: who asks for the file would find none.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "result.json", result.as_dict())
        return result
    except Exception as error:
        log_traceback(Stage.JUDGE, error)
        failure = unexpected(Stage.JUDGE, error)
        note = f"{folder / 'result.json'} could not be written: {failure.message}"
        LOGGER.error(note)
        if result.failure:
            return replace(result, notes=(*result.notes, note))
        failed = replace(failure, message=note)
        return replace(result, verdict=Verdict.FAILED, failure=failed)


def _judged(session: Session, state: RoundState) -> Judgement:
    failure, folders = state.failure, [session.log_dir / node.folder for node in state.nodes]
    if failure is None and state.outcome is not None and state.framework is not None:
        explained = explain(state.nodes, dict(enumerate(folders)), state.outcome, state.framework)
        failure = explained.failure
        state.notes += [explained.note] if explained.note else []
    return judge(state.case, folders, failure)


def _with_round_time(figures: Mapping[str, Figure], time_s: float) -> dict[str, Any]:
    return {**figures, "round_time": DEFINITIONS["round_time"].figure(time_s, "the controller's clock")}
