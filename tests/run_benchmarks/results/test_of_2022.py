"""A tree as FlagPerf of 2022 wrote it, by its documented lines alone, is read, judged and reported."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.load import load_run
from run_benchmarks.results.of_2022 import NOTE
from run_benchmarks.results.rescore import rescore
from run_benchmarks.results.summary import as_markdown
from run_benchmarks.results.text import run_text
from tests.run_benchmarks.builders import perf_log
from utils.records import FailureClass, Verdict

CASE = "bert:pytorch_1.8:A100:2:2:2"
FINISHED = {
    "e2e_time": 3309.1,
    "training_sequences_per_second": 589.3,
    "converged": True,
    "final_loss": 2.83,
    "final_mlm_accuracy": 0.713,
    "raw_train_time": 3203.9,
    "init_time": 71.5,
}
STEP = {
    "loss": 3.4, "epoch": 1, "end_training": False, "global_steps": 10, "num_trained_samples": 3840,
    "learning_rate": 3.5e-4, "seq/s": 590.1,
}  # fmt: skip
VALUES = {"INIT_START": None, "INIT_END": None, "TRAIN_START": None, "STEP_END": STEP, "TRAIN_END": None}
BEGIN_MS = 1_669_029_564_013


def rank_log(rank: int, finished: dict[str, object] | None) -> str:
    values = {**VALUES, **({"FINISHED": finished} if finished and rank == 0 else {})}
    times = range(BEGIN_MS, BEGIN_MS + 10_000_000, 1_000_000)
    lines = [
        perf_log(
            name, json.dumps(value), file="run_pretraining.py", lineno=60 + rank, time_ms=time_ms, rank=rank
        )
        for (name, value), time_ms in zip(values.items(), times, strict=False)
    ]
    return "\n".join(["/opt/conda/bin/python: a warning", *lines, ""])


def write_round(folder: Path, finished: dict[str, object] | None) -> None:
    for node, host in enumerate(("10.1.2.2", "10.1.2.3")):
        made = folder / f"{host}_noderank{node}"
        made.mkdir(parents=True)
        for rank in (2 * node, 2 * node + 1):
            (made / f"rank{rank}.out.log").write_text(rank_log(rank, finished))
        (made / "start_pytorch_task.log").write_text("")
        for name in ("cpu", "mem"):
            (made / f"{name}_monitor.log").write_text("2022-11-21-19:19:24\t0.271\n")
        (made / "pwr_monitor.log").write_text("2022-11-21-19:19:24\t3120.0\n")
        (made / "nvidia_monitor.log").write_text(
            "2022-11-21-19:19:24\n33C 61W 1234MiB 40536MiB 98%\n33C 60W 1234MiB 40536MiB 97%\n\n"
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two rounds on two nodes with two ranks each, of which the second did not come to its end."""
    made = tmp_path / "run20221121191924"
    write_round(made / CASE / "round1", dict(FINISHED))
    write_round(made / CASE / "round2", None)
    (made / "flagperf_run.log").write_text("2022-11-21 19:19:24,013\t[INFO]\t[run.py,500]======== start\n")
    return made


def test_it_is_read_with_what_it_measured_and_nulls_for_the_rest(folder: Path) -> None:
    run = load_run(folder, by_name_alone)
    assert run.name == "run20221121191924" and run.exit_code is None and run.notes == (NOTE,)
    assert run.started == "2022-11-21T11:19:24+00:00"
    first, second = run.results
    assert (first.verdict, first.hosts) == (Verdict.CONVERGED, ("10.1.2.2", "10.1.2.3"))
    measured = {name: figure.value for name, figure in first.figures.items() if figure.value is not None}
    assert measured == {
        "e2e_time": 3309.1,
        "init_time": 71.5,
        "raw_train_time": 3203.9,
        "p_whole": 589.3,
        "final_loss": 2.83,
        "acc": 0.713,
    }
    assert all(figure.source for figure in first.figures.values()), "what is null says why"
    assert first.provenance is None and first.rules.stamp is None and NOTE in first.notes
    assert second.verdict is Verdict.INVALID and second.failure
    assert second.failure.failure_class is FailureClass.NO_RESULT


def test_it_is_shown_and_scored_again_as_any_other(folder: Path) -> None:
    run = load_run(folder, by_name_alone)
    text = run_text(run, 120)
    assert "CONVERGED" in text and "589" in text and NOTE in text
    assert NOTE in as_markdown(run)
    assert [each.figures() for each in rescore(folder, by_name_alone)] == [{}, {}]


def test_names_of_that_time_say_nothing_and_need_not(folder: Path) -> None:
    """In its first dialect a case had any name."""
    (folder / CASE).rename(folder / "BERT_PYTORCH_DEMO")
    assert load_run(folder, by_name_alone).results[0].figures["p_whole"].value == 589.3


def test_a_node_that_is_missing_ends_the_list_of_hosts(folder: Path) -> None:
    shutil.rmtree(folder / CASE / "round1" / "10.1.2.2_noderank0")
    (first, *_) = load_run(folder, by_name_alone).results
    assert first.hosts == () and first.verdict is Verdict.INVALID


@pytest.mark.parametrize("name", ["round.json", "10.1.2.3_noderank1/telemetry.jsonl"])
def test_a_tree_of_today_that_lost_its_plan_is_not_taken_for_one(name: str, folder: Path) -> None:
    """Without its plan nobody knows its rules: it is not judged by those of a case with a script of its own."""
    (folder / CASE / "round1" / name).write_text("")
    run = load_run(folder, by_name_alone)
    assert run.results == () and NOTE not in run.notes


def test_an_empty_or_hostile_tree_is_read_all_the_same(folder: Path) -> None:
    node = folder / CASE / "round1" / "10.1.2.2_noderank0"
    (node / "rank0.out.log").write_text('[PerfLog] {"event": "INIT_START", "metadata": {"time_ms": 1e300}}\n')
    (folder / CASE / "round1" / "x_noderank99999").mkdir()
    (folder / CASE / "round2" / "10.1.2.2_noderank0" / "rank0.out.log").unlink()
    (folder / "empty" / "round1").mkdir(parents=True)
    run = load_run(folder, by_name_alone)
    assert [result.verdict for result in run.results] == [Verdict.INVALID, Verdict.INVALID]
    assert run_text(run, 80)
