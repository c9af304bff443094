"""A round that had ended, and of which a run that is taken up can read nothing: it has failed, and is no good run's."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks import round_state, runner
from run_benchmarks.results import judge, load
from run_benchmarks.results.round_result import Observation, RoundResult
from tests.ports import reserved_port
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    """Both of its rounds were good; then its controller died, and the first one's result.json is not there."""
    with reserved_port() as port:
        whole = make_whole_run(tmp_path, port, monkeypatch)
        whole.configure(f'CASES = {{"toy:pytorch:X1:1:1:2": "{tmp_path}/data"}}\n')
        assert whole.main() == 0
        (whole.result / "summary.json").unlink()
        (first(whole) / "result.json").unlink()
        alter_journal(whole, lambda line: line["event"] != "run_ended")
        yield whole


def first(run: WholeRun) -> Path:
    (folder,) = run.result.glob("*/round1")
    return folder


def alter_journal(run: WholeRun, keeps: Callable[[dict[str, Any]], bool]) -> None:
    path = run.result / "journal.jsonl"
    lines = [line for line in map(json.loads, path.read_text().splitlines()) if keeps(line)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def note_unwritten(run: WholeRun) -> None:
    """Its result had found no room: the journal has the fault by which it could not be written."""

    def keeps(line: dict[str, Any]) -> bool:
        if line["event"] == "round_ended" and line["round"] == 1:
            line |= {"verdict": "FAILED", "unwritten": True}
        return True

    alter_journal(run, keeps)


def tear(run: WholeRun) -> None:
    (first(run) / "round.json").write_text("{")


def remove(run: WholeRun) -> None:
    shutil.rmtree(first(run))


@pytest.mark.parametrize("is_unwritten", [False, True])
@pytest.mark.parametrize(
    ("lose", "reason"),
    [(tear, "round1/round.json: is not JSON"), (remove, "round1/round.json is not there")],
)
def test_a_round_of_which_nothing_can_be_read_has_failed_and_the_others_stay(
    lose: Callable[[WholeRun], None], reason: str, is_unwritten: bool, run: WholeRun
) -> None:
    if is_unwritten:
        note_unwritten(run)
    lose(run)
    assert run.main("resume") == 1
    by_round = {each["round"]: each for each in run.summary["rounds"]}
    assert {number: each["verdict"] for number, each in by_round.items()} == {1: "FAILED", 2: "CONVERGED"}
    failure = by_round[1]["failure"]
    assert reason in failure["message"] and failure["class"] == "controller_error"
    assert run.summary["exit_code"] == 1 and not any("not begun" in note for note in run.summary["notes"])


def test_a_round_that_judging_does_not_survive_has_failed_as_at_its_end(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_unwritten(run)

    def broken(case: Any, seen: Observation, *more: Any) -> RoundResult:
        if seen.round == 1:
            raise ValueError("a log that judging does not survive")
        return judge.without_secrets(case, seen, *more)

    for module in (round_state, load):
        monkeypatch.setattr(module, "without_secrets", broken)
    assert run.main("resume") == 1
    result = json.loads((first(run) / "result.json").read_text())
    assert result["verdict"] == "FAILED" and "does not survive" in result["failure"]["message"]
    assert result["hosts"] == ["localhost"]
    assert sorted(each["verdict"] for each in run.summary["rounds"]) == ["CONVERGED", "FAILED"]


def test_a_run_is_good_only_where_every_round_of_its_plan_has_a_result(
    run: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever loses one."""
    tear(run)
    monkeypatch.setattr(runner, "results_so_far", lambda session, so_far: [*so_far.results])
    assert run.main("resume") == 1
    assert [each["round"] for each in run.summary["rounds"]] == [2]
