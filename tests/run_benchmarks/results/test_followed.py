"""A training that ended well, whose log did not come home: judged by the events that were followed, if they suffice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.names import FOLLOWED_EVENTS
from run_benchmarks.results.judge import judge
from run_benchmarks.results.planned import planned
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.stages.watch import Ended, Outcome
from tests.run_benchmarks.builders import make_case, observed, training_events, write_rank_log
from utils.events import Event, format_line
from utils.records import Failure, FailureClass, Stage, Verdict

WELL = Outcome({0: Ended(0, 1.0), 1: Ended(0, 1.0)}, False, {})


def judged(
    folder: Path,
    events: Sequence[Event] | None,
    kind: FailureClass = FailureClass.LOGS_NOT_COLLECTED,
    verdict: Verdict = Verdict.FAILED,
    stage: Stage = Stage.COLLECT,
) -> RoundResult:
    """The result of a round that ended well but for a failure at the end, and of which these events were followed."""
    folder.mkdir(exist_ok=True)
    if events is not None:
        (folder / FOLLOWED_EVENTS).write_text("".join(f"{format_line(event)}\n" for event in events))
    case = make_case()
    seen = observed(case, failure=Failure(verdict, stage, kind, "h1", "the stream broke off"), outcome=WELL)
    return judge(planned(case), seen, folder, str)


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        (FailureClass.LOGS_NOT_COLLECTED, Verdict.FAILED),
        (FailureClass.HOST_UNREACHABLE, Verdict.UNREACHABLE),
    ],
)
def test_what_was_followed_to_its_end_is_a_result(
    kind: FailureClass, verdict: Verdict, tmp_path: Path
) -> None:
    result = judged(tmp_path, training_events(), kind, verdict)
    assert (result.verdict, result.failure) == (Verdict.CONVERGED, None)
    (note,) = (note for note in result.notes if FOLLOWED_EVENTS in note)
    assert "rank0.out.log could not be fetched (the stream broke off)" in note
    log = write_rank_log(tmp_path / "h1_noderank0", training_events())
    of_log = judged(tmp_path, None, kind, verdict)
    assert of_log.facts == result.facts and log.is_file()
    assert {name: each.value for name, each in of_log.figures.items()} == {
        name: each.value for name, each in result.figures.items()
    }


def test_it_is_held_to_the_same_as_a_log(tmp_path: Path) -> None:
    result = judged(tmp_path, training_events(final_mlm_accuracy=0.1))
    assert result.failure is not None
    assert result.failure.failure_class is FailureClass.INCONSISTENT_RESULT


@pytest.mark.parametrize(
    "events", [None, [], training_events()[:-1], [replace(each, rank=1) for each in training_events()]]
)
def test_without_the_end_the_round_stays_as_it_was(events: Sequence[Event] | None, tmp_path: Path) -> None:
    result = judged(tmp_path, events)
    assert result.failure is not None
    assert result.failure.failure_class is FailureClass.LOGS_NOT_COLLECTED
    assert result.facts == {}


def test_it_is_never_used_where_the_log_is_there(tmp_path: Path) -> None:
    write_rank_log(tmp_path / "h1_noderank0", training_events(converged=False, time_to_target=None)[:2])
    result = judged(tmp_path, training_events())
    assert result.failure is not None and result.failure.failure_class is FailureClass.NO_RESULT


@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        (FailureClass.COMMAND_FAILED, Stage.TRAIN),
        (FailureClass.HOST_UNREACHABLE, Stage.TRAIN),
        (FailureClass.CONTROLLER_ERROR, Stage.COLLECT),
        (FailureClass.INTERRUPTED, Stage.COLLECT),
    ],
)
def test_any_other_failure_stands(kind: FailureClass, stage: Stage, tmp_path: Path) -> None:
    verdict = Verdict.UNREACHABLE if kind is FailureClass.HOST_UNREACHABLE else Verdict.FAILED
    result = judged(tmp_path, training_events(), kind, verdict, stage)
    assert result.failure is not None and result.failure.failure_class is kind


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = write_rank_log(tmp_path / "elsewhere", training_events())
    (tmp_path / "round").mkdir()
    (tmp_path / "round" / FOLLOWED_EVENTS).symlink_to(elsewhere)
    assert judged(tmp_path / "round", None).verdict is Verdict.FAILED
