"""A run's searches as AIPerf's users know them: results.txt, a report by its name, trials and logs."""

from __future__ import annotations

import ast
import json
import math
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.load import load_run
from run_benchmarks.verbs import main
from tests.run_benchmarks.exports.demo_run import copied
from tests.run_benchmarks.results.search.searched import write_search_run
from tests.search_log import LongSearch, account_of, two_trials

RECORDS = LongSearch().records()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export of a run with a search that counts and one that does not."""
    folder = tmp_path_factory.mktemp("exported")
    run = folder / "run20260102030405"
    write_search_run(
        run, (2, RECORDS), (1, [each for each in two_trials() if getattr(each, "worker", 0) == 0])
    )
    assert main(["export", str(run), "--format", "aiperf"]) == 0
    return folder / "run20260102030405-aiperf"


def test_the_files_and_their_names(exported: Path) -> None:
    good, bad = exported / "search_pytorch_X1_2_1_1_round1", exported / "search_pytorch_X1_1_1_1_round1"
    assert sorted(path.name for path in exported.iterdir()) == sorted([good.name, bad.name, "logs.tar.gz"])
    assert sorted(path.name for path in good.iterdir()) == [
        "Report_20231115001320_Succeed.html", "results.txt", "trials.json",
    ]  # fmt: skip
    (report,) = bad.glob("Report_*_Failed.html")
    assert "Failed</span>" in report.read_text()
    with tarfile.open(exported / "logs.tar.gz") as logs:
        assert any(name.endswith("h1_noderank0/controller.out.log") for name in logs.getnames())


def test_without_an_error_there_is_no_regulated_score(tmp_path: Path) -> None:
    run = tmp_path / "run20260102030405"
    perfect = [
        replace(each, accuracy=1.0) if getattr(each, "accuracy", None) is not None else each
        for each in RECORDS
    ]
    write_search_run(run, (2, perfect))
    assert main(["export", str(run), "--format", "aiperf"]) == 0
    text = (tmp_path / f"{run.name}-aiperf" / "search_pytorch_X1_2_1_1_round1" / "results.txt").read_text()
    assert "Final Regulated Score : -\n" in text
    assert ast.literal_eval(text.splitlines()[-2])["Score"][-1] is None


def test_results_are_in_aiperfs_words_and_units(exported: Path) -> None:
    text = (exported / "search_pytorch_X1_2_1_1_round1" / "results.txt").read_text()
    lines = text.splitlines()
    account = account_of(RECORDS)
    best = account.best
    assert best is not None and best.accuracy is not None and account.score is not None
    final = [line.partition(" : ") for line in lines[1:3]]
    assert [each[0] for each in final] == ["Final Score", "Final Regulated Score"]
    score, regulated = (float(each[2].removesuffix(" GFLOPS")) for each in final)
    assert score == pytest.approx(account.score / 1e9)
    assert regulated == pytest.approx(score * -math.log(1 - best.accuracy))
    assert lines[4].split("\t")[0].strip() == "Time(H)"
    columns = ast.literal_eval(lines[-2])
    assert list(columns) == ["real_time", "GFLOPS", "Error", "Score"]
    assert columns["Error"][-1] == pytest.approx(100 * (1 - best.accuracy))
    rows = lines[6:-3]
    assert len(rows) == len(columns["real_time"]) > 10
    assert float(rows[0].split("\t")[0]) == pytest.approx(columns["real_time"][0], rel=1e-3)


def test_a_search_that_failed_says_why_in_the_first_line(exported: Path) -> None:
    text = (exported / "search_pytorch_X1_1_1_1_round1" / "results.txt").read_text()
    assert text.splitlines()[1].startswith("!!! Test failed due to at the stage judge on h1")


def test_the_trials(exported: Path) -> None:
    trials = json.loads((exported / "search_pytorch_X1_2_1_1_round1" / "trials.json").read_text())
    account = account_of(RECORDS)
    assert [each["trial"] for each in trials] == list(account.trials)
    first = trials[0]
    assert (first["parent"], first["state"], len(first["epochs_done"])) == (None, "done", 4)
    assert first["epochs_done"][0]["accuracy"] == account.trials[1].epochs[0].accuracy


def test_a_run_without_a_search_has_none(tmp_path: Path) -> None:
    run = copied(tmp_path, rounds=1)
    assert load_run(run, by_name_alone).results
    assert main(["export", str(run), "--format", "aiperf", "--output", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
