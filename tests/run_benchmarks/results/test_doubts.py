"""Figures that are doubtful for what happened beside a round are marked wherever they are shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.hosts.granted import GrantedJob
from run_benchmarks.results.judge import judge
from run_benchmarks.results.planned import planned
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.rules import CLOSED
from run_benchmarks.results.tables import results_text
from run_benchmarks.stages.watch import Lost, Outcome
from tests.run_benchmarks.builders import make_case, observed, training_events, write_rank_log
from utils.records import FailureClass

CASE = make_case()
ANOTHER = "run20260102030406-aaaaaa"
SUSPENDED = "job 17 was suspended for 30 s"
SHARED = f"h2: shared with {ANOTHER}"


def judged(tmp_path: Path, outcome: Outcome | None = None, **seen: Any) -> RoundResult:
    write_rank_log(tmp_path / "h1_noderank0", training_events())
    return judge(planned(CASE), replace(observed(CASE, outcome=outcome), **seen), tmp_path, str)


def test_figures_of_a_shared_host_are_marked_and_what_was_learnt_is_not(tmp_path: Path) -> None:
    result = judged(tmp_path, neighbours={"h2": (ANOTHER,)})
    marked = {name for name, each in result.figures.items() if SHARED in each.caveat}
    assert {"p_train", "e2e_time", "round_time"} <= marked
    assert not {"acc", "final_loss", "samples", "steps"} & marked
    shown = results_text([result], None)
    (note,) = [line for line in shown.splitlines() if SHARED in line]
    assert "p_train" in note and CASE.settings.name in note
    assert all(not each.caveat for each in judged(tmp_path).figures.values())


@pytest.mark.parametrize(("suspended_s", "is_marked"), [(30.0, True), (0.0, False)])
def test_figures_of_a_job_that_was_suspended_are_marked_and_closed_to_nobody(
    suspended_s: float, is_marked: bool, tmp_path: Path
) -> None:
    job = GrantedJob("slurm", "17", ("h1", "h2"), suspended_s=suspended_s, suspended_before_s=99.0)
    result = judged(tmp_path, allocation=job)
    marked = {name for name, each in result.figures.items() if each.caveat == SUSPENDED}
    assert ({"p_train", "e2e_time", "round_time"} <= marked) is is_marked
    assert not {"acc", "final_loss", "samples", "steps"} & marked
    assert (SUSPENDED in result.rules.doubt) is is_marked and result.rules.stamp != CLOSED
    assert any(note.startswith(f"{SUSPENDED} while the round had it") for note in result.notes) is is_marked


def test_what_was_marked_already_keeps_its_reason(tmp_path: Path) -> None:
    result = judged(tmp_path, neighbours={"h2": (ANOTHER,)}, unwatched_s=12.0)
    assert result.figures["round_time"].caveat == (f"up to 12 s of it passed without a controller; {SHARED}")
    assert result.figures["p_train"].caveat == SHARED


@pytest.mark.parametrize("unwatched_s", [0.0, 12.0])
def test_nobody_is_blamed_for_a_task_that_went_while_nobody_watched(
    tmp_path: Path, unwatched_s: float
) -> None:
    gone = Lost("no such unit", True, 1.0, FailureClass.TASK_REMOVED)
    failure = judged(tmp_path, Outcome({0: gone, 1: gone}, False, {}), unwatched_s=unwatched_s).failure
    assert failure is not None and failure.failure_class is FailureClass.TASK_REMOVED
    assert ("had no controller" in failure.message) == (unwatched_s > 0)
