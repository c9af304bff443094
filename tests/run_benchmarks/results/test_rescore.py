"""A run judged again by today's formulas: what differs is told, nothing is written, what cannot be is said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results import judge as judge_module
from run_benchmarks.results.load import load_run
from run_benchmarks.results.rescore import Rescored, rescore
from tests.run_benchmarks.written_run import NAME, SCHEMA1, write_run
from utils.records import Verdict


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_run(tmp_path / "run")
    return tmp_path / "run"


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def text_of(rounds: list[Rescored]) -> str:
    return "\n".join(line for each in rounds for line in each.lines())


def change_log(folder: Path, old: str, new: str) -> None:
    path = folder / NAME / "round1" / "h1_noderank0" / "rank0.out.log"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_what_was_written_by_these_formulas_does_not_change(folder: Path) -> None:
    before = content_of(folder)
    rounds = rescore(folder, by_name_alone)
    assert [each.after for each in rounds] == [each.before for each in rounds]
    assert text_of(rounds).count("as before; 0 of ") == 3
    assert content_of(folder) == before


@pytest.mark.parametrize("kind", ["converged", "not_converged", "failed", "torn"])
def test_runs_of_schema_1_have_the_same_figures_by_todays_formulas(kind: str) -> None:
    (path,) = (SCHEMA1 / kind).iterdir()
    for each in rescore(path, by_name_alone):
        # a round that was cut off says what it had; of a loss nobody knows that it is in nats
        new = {"init_time"} if kind == "failed" else {"final_loss"}
        assert each.after is not None and each.figures().keys() == new
        assert each.after.verdict is each.before.verdict
        assert each.after.failure == each.before.failure
        assert each.after.rules == each.before.rules


def test_a_figure_and_a_verdict_that_differ_are_told(folder: Path) -> None:
    change_log(folder, '"converged": true', '"converged": false')
    change_log(folder, '"final_mlm_accuracy": 0.33', '"final_mlm_accuracy": 0.25')
    change_log(folder, '"mlm_accuracy": 0.33', '"mlm_accuracy": 0.25')
    change_log(folder, '"time_to_target": 9.0', '"time_to_target": null')
    change_log(folder, '"num_trained_samples": 1000', '"num_trained_samples": 2000')
    rounds = rescore(folder, by_name_alone)
    lines = text_of(rounds).splitlines()
    assert f"{NAME}, round 1: CONVERGED -> NOT_CONVERGED; 7 of 34 figures differ" in lines
    assert "  p_whole: 100 samples/s -> 200 samples/s" in lines
    plain = json.loads(json.dumps(rounds[0].as_dict()))
    assert plain["verdict"] == ["CONVERGED", "NOT_CONVERGED"]
    assert [side["value"] for side in plain["figures"]["p_whole"]] == [100.0, 200.0]


def test_a_log_that_was_brought_later_is_judged(folder: Path) -> None:
    """What the remedy of `logs_not_collected` says: copy the log to its place, and judge the round again."""
    path = folder / NAME / "round1" / "round.json"
    failure = {
        "verdict": "FAILED",
        "stage": "collect",
        "class": "logs_not_collected",
        "host": "h1",
        "message": "no room",
        "evidence": "",
        "remedy": "",
        "file": "",
    }
    path.write_text(json.dumps({**json.loads(path.read_text()), "failure": failure}))
    (after,) = (
        each.after
        for each in rescore(folder, by_name_alone)
        if (each.before.case, each.before.round) == (NAME, 1)
    )
    assert after is not None and after.verdict is Verdict.CONVERGED
    assert "rank0.out.log was not collected, and was put there later" in after.notes
    (folder / NAME / "round1" / "h1_noderank0" / "rank0.out.log").unlink()
    (path.parent / "result.json").unlink()
    (folder / "summary.json").unlink()
    (lost,) = (
        each for each in rescore(folder, by_name_alone) if (each.before.case, each.before.round) == (NAME, 1)
    )
    assert lost.before.verdict is Verdict.FAILED


def test_a_figure_that_is_gone_or_new_is_told(folder: Path) -> None:
    change_log(folder, '"rate": {', '"other": {')
    text = text_of(rescore(folder, by_name_alone))
    assert "  rate: 2.5 GB/s -> none" in text and "  other: none -> 2.5 GB/s" in text


def test_a_verdict_that_is_lost_says_why(folder: Path) -> None:
    change_log(folder, '"event": "FINISHED"', '"event": "DONE"')
    first = rescore(folder, by_name_alone)[0]
    assert first.after is not None and first.after.verdict is Verdict.INVALID
    assert "FINISHED was not reported by global rank 0" in text_of([first])


def test_without_its_logs_a_round_cannot_be_scored_again(folder: Path) -> None:
    shutil.rmtree(folder / NAME / "round1" / "h1_noderank0")
    shutil.rmtree(folder / NAME / "round2")
    text = text_of(rescore(folder, by_name_alone))
    for number in (1, 2):
        assert f"{NAME}, round {number}: cannot be scored again: rank0.out.log is not in the folder" in text
    assert f"{NAME}, round 3: UNREACHABLE, as before" in text


def test_without_the_plan_nothing_can_be_scored_again(folder: Path) -> None:
    (folder / "plan.json").write_text('{"cases": [{"settings": {}}]}')
    rounds = rescore(folder, by_name_alone)
    assert len(rounds) == 3 and {each.after for each in rounds} == {None}
    assert text_of(rounds).count("plan.json does not tell of the case") == 3


def test_logs_that_break_the_judge_are_a_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(judge_module, "read_rank_logs", broken)
    assert (
        text_of(rescore(folder, by_name_alone)).count("cannot be scored again: RecursionError: too deep") == 3
    )


def test_an_observation_that_cannot_be_read_is_a_reason(folder: Path) -> None:
    (folder / NAME / "round1" / "round.json").write_text("{")
    assert "cannot be scored again" in text_of(rescore(folder, by_name_alone)[:1])


def test_a_kind_of_case_that_is_not_known_is_a_reason(folder: Path) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    plan["cases"][0]["parameters"]["case_kind"] = "dance"
    (folder / "plan.json").write_text(json.dumps(plan))
    assert text_of(rescore(folder, by_name_alone)).count("cannot be scored again") == 3
    assert any("case_kind is 'dance'" in note for note in load_run(folder, by_name_alone).notes)


def test_a_round_whose_result_cannot_be_read_is_not_as_before(folder: Path) -> None:
    (folder / "summary.json").unlink()
    (folder / NAME / "round1" / "result.json").write_text("{")
    assert "round 1: CONVERGED, judged anew" in text_of(rescore(folder, by_name_alone)[:1])


def test_what_a_figure_means_and_why_a_round_failed_are_compared_too(folder: Path) -> None:
    path = folder / NAME / "round2" / "result.json"
    content = json.loads(path.read_text())
    content["failure"]["message"] = "another"
    content["rules"]["stamp"] = "open"
    content["figures"]["rate"]["definition"] = "another rate"
    path.write_text(json.dumps(content))
    second = rescore(folder, by_name_alone)[1]
    assert list(second.figures()) == ["rate"] and list(second.others()) == ["rules", "failure"]
    assert "another" in text_of([second])
