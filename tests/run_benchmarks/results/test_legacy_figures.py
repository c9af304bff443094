"""FINISHED as existing cases report it, in its several forms, becomes figures; what is missing stays null."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.rules import Rules
from tests.run_benchmarks.builders import judge_folders, make_case, perf_log, with_own_script
from utils.records import Verdict

# 1000 samples in 10 s, of which 8 without evaluations and 5 of pure computing.
CASES_OF_2022 = {
    "e2e_time": 12.5,
    "training_sequences_per_second": 100.0,
    "converged": True,
    "final_loss": 1.5,
    "final_mlm_accuracy": 0.72,
    "raw_train_time": 10.0,
    "init_time": 2.0,
}
LATER_CASES = {
    "e2e_time": 12.5,
    "train_time": 10.0,
    "train_no_eval_time": 8.0,
    "pure_training_computing_time": 5.0,
    "throughput(ips)_raw": 100.0,
    "throughput(ips)_no_eval": 125.0,
    "throughput(ips)_pure_compute": 200.0,
    "converged": False,
    "final_acc1": 0.75,
    "final_acc5": 0.92,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "h1_noderank0"
    made.mkdir()
    return made


def judged(folder: Path, finished: dict[str, Any], **parameters: Any) -> RoundResult:
    lines = [
        perf_log(
            "TRAIN_START", "null", file="/workspace/run_pretraining.py", lineno=124, time_ms=1_000, rank=0
        ),
        perf_log("FINISHED", json.dumps(finished), file="x.py", lineno=158, time_ms=11_000, rank=0),
    ]
    (folder / "rank0.out.log").write_text("\n".join(lines))
    case = with_own_script(make_case(["h1"]))
    return judge_folders(replace(case, parameters=parameters), [folder])


def values(judgement: RoundResult, *names: str) -> list[float | None]:
    return [judgement.figures[name].value for name in names]


def test_a_case_of_2022(folder: Path) -> None:
    judgement = judged(folder, CASES_OF_2022)
    assert judgement.verdict is Verdict.CONVERGED
    assert values(judgement, "e2e_time", "init_time", "raw_train_time", "final_loss") == [
        12.5,
        2.0,
        10.0,
        1.5,
    ]
    assert values(judgement, "p_whole", "acc") == [100.0, 0.72]
    assert judgement.figures["acc"].unit == "mlm_accuracy"
    assert judgement.figures["p_whole"].source.startswith("training_sequences_per_second, FINISHED")
    unknown = ("p_train", "p_core", "no_eval_time", "pure_compute_time", "samples", "steps", "MFU", "mem")
    assert values(judgement, *unknown) == [None] * len(unknown)
    assert judgement.facts == CASES_OF_2022, "the raw values stay as they came"


def test_a_later_case(folder: Path) -> None:
    judgement = judged(folder, LATER_CASES)
    assert judgement.verdict is Verdict.NOT_CONVERGED
    times = ("raw_train_time", "no_eval_time", "pure_compute_time")
    assert values(judgement, *times, "p_whole", "p_train", "p_core") == [10.0, 8.0, 5.0, 100.0, 125.0, 200.0]


@pytest.mark.parametrize(
    ("parameters", "acc"),
    [({}, None), ({"target_acc1": 0.75}, 0.75), ({"target_acc1": 1, "target_acc5": 1}, None)],
)
def test_of_several_metrics_the_one_with_a_target(
    folder: Path, parameters: dict[str, float], acc: float | None
) -> None:
    assert values(judged(folder, LATER_CASES, **parameters), "acc") == [acc]


# Lines as public FlagPerf's logger writes them: distilbert's events, and longformer's names of them.
RECORDED = """\
[PerfLog] {"event": "INIT_START", "metadata": {"file": "run_pretraining.py", "lineno": 43, "time_ms": 1690000000000, "rank": 0}}
[PerfLog] {"event": "INIT_EVALUATION", "value": {"time": 3.1}, "metadata": {"file": "run_pretraining.py", "lineno": 77, "time_ms": 1690000012000, "rank": 0}}
[PerfLog] {"event": "INIT_END", "other": "Finish initialization", "metadata": {"file": "run_pretraining.py", "lineno": 82, "time_ms": 1690000012500, "rank": 0}}
[PerfLog] {"event": "TRAIN_START", "metadata": {"file": "run_pretraining.py", "lineno": 86, "time_ms": 1690000013000, "rank": 0}}
[PerfLog] {"event": "STEP_END", "value": {"loss": 0.31, "global_steps": 100}, "metadata": {"file": "trainer.py", "lineno": 82, "time_ms": 1690000023000, "rank": 0}}
[PerfLog] {"event": "EVALUATE", "value": {"global_steps": 100, "acc": 0.88, "time": 2.0}, "metadata": {"file": "trainer.py", "lineno": 96, "time_ms": 1690000025000, "rank": 0}}
[PerfLog] {"event": "EVALUATE", "value": {"global_steps": 200, "acc": 0.912, "time": 2.0}, "metadata": {"file": "trainer.py", "lineno": 96, "time_ms": 1690000037000, "rank": 0}}
[PerfLog] {"event": "EVALUATE", "value": {"global_steps": 300, "acc": 0.915, "time": 2.0}, "metadata": {"file": "trainer.py", "lineno": 96, "time_ms": 1690000049000, "rank": 0}}
[PerfLog] {"event": "TRAIN_END", "metadata": {"file": "run_pretraining.py", "lineno": 96, "time_ms": 1690000049500, "rank": 0}}
[PerfLog] {"event": "FINISHED", "value": {"e2e_time": 52.0, "train_time": 36.5, "train_no_eval_time": 30.5, "pure_training_computing_time": 30.0, "throughput(ips)_raw": 1000.0, "converged": CONVERGED, "acc": 0.915}, "metadata": {"file": "run_pretraining.py", "lineno": 128, "time_ms": 1690000050000, "rank": 0}}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("parameters", "converged", "values_of"),
    [
        ({"target_acc": 0.91}, "true", (0.915, 12.5, 24.0)),
        ({"target_acc": 0.91}, "false", (0.915, 12.5, None)),  # it says itself that it did not meet it
        ({"target_acc": 0.92, "metric_better": "lower"}, "true", (0.915, 12.5, 12.0)),
        (
            {"target_acc": 0.9, "target_f1": 0.5},
            "true",
            (0.915, 12.5, None),
        ),  # which of them ends it is not said
        ({}, "true", (None, 12.5, None)),
    ],
)
def test_what_finished_leaves_out_comes_from_the_other_events(
    folder: Path, parameters: dict[str, Any], converged: str, values_of: tuple[float | None, ...]
) -> None:
    (folder / "rank0.out.log").write_text(RECORDED.replace("CONVERGED", converged))
    case = replace(with_own_script(make_case(["h1"])), parameters=parameters)
    judgement = judge_folders(case, [folder])
    assert tuple(values(judgement, "acc", "init_time", "time_to_target")) == values_of
    figures = judgement.figures
    assert figures["init_time"].source == "INIT_START..INIT_END in the log of global rank 0"
    assert (
        figures["time_to_target"].value is None or "TRAIN_START..EVALUATE" in figures["time_to_target"].source
    )


@pytest.mark.parametrize(
    ("target", "reported", "value", "better"),
    [
        ({"target_ppl": 55}, "final_ppl_accuracy", 54.5, "lower"),
        ({"target_bleu": 27.0}, "final_acc", 27.3, "higher"),
        ({"target_mAP": 0.83}, "final_accuracy", 0.84, "higher"),
    ],
)
def test_a_metric_that_is_called_otherwise_than_its_target_is_that_of_the_target(
    folder: Path, target: dict[str, float], reported: str, value: float, better: str
) -> None:
    """A perplexity that is called an accuracy is no better where it is larger."""
    judgement = judged(folder, {**CASES_OF_2022, "final_mlm_accuracy": None, reported: value}, **target)
    assert judgement.figures["acc"].value is None  # two names
    finished = {name: each for name, each in CASES_OF_2022.items() if name != "final_mlm_accuracy"}
    judgement = judged(folder, {**finished, reported: value}, **target)
    figure = judgement.figures["acc"]
    assert (figure.value, figure.unit, figure.better) == (value, next(iter(target))[len("target_") :], better)
    assert judgement.verdict is Verdict.CONVERGED and not any(
        "not proved" in note for note in judgement.notes
    )
    far = value * (2 if better == "lower" else 0.5)
    assert judged(folder, {**finished, reported: far}, **target).verdict is Verdict.INVALID
    judgement = judged(folder, {**finished, "final_other": value}, **target)
    assert any("not proved" in note for note in judgement.notes)


@pytest.mark.parametrize(("f1", "is_doubted"), [(0.1, True), (0.92, False), (0.8999, False), (None, False)])
def test_of_two_targets_both_have_to_be_met(folder: Path, f1: float | None, is_doubted: bool) -> None:
    finished = {**CASES_OF_2022, "metric": "mlm_accuracy", "final_f1": f1}
    result = judged(folder, finished, target_mlm_accuracy=0.3, target_f1=0.9)
    doubt = "that it converged is not proved: f1 is 0.1, and target_f1 = 0.9"
    assert result.verdict is Verdict.CONVERGED
    assert (doubt in result.rules.doubt, doubt in result.notes) == (is_doubted, is_doubted)


@pytest.mark.parametrize(
    ("better", "metric", "target", "reached", "other", "is_doubted"),
    [
        ("higher", "accuracy", 0.7, 0.75, ("loss", 0.5, 0.4), False),
        ("higher", "accuracy", 0.7, 0.75, ("loss", 0.5, 0.6), True),
        ("lower", "edit_distance", 4.0, 3.0, ("accuracy", 0.7, 0.75), False),
        ("lower", "edit_distance", 4.0, 3.0, ("accuracy", 0.8, 0.3), True),
    ],
)
def test_which_way_is_better_is_of_the_metric_alone(
    better: str,
    metric: str,
    target: float,
    reached: float,
    other: tuple[str, float, float],
    *,
    is_doubted: bool,
    folder: Path,
) -> None:
    name, aim, value = other
    finished = {**CASES_OF_2022, "metric": metric, f"final_{metric}": reached, f"final_{name}": value}
    targets = {f"target_{metric}": target, f"target_{name}": aim, "metric_better": better}
    result = judged(folder, finished, **targets)
    assert (f"{name} is {value}, and target_{name} = {aim}" in result.rules.doubt) == is_doubted


def test_a_case_that_may_change_its_code_is_not_closed(folder: Path) -> None:
    judged(folder, CASES_OF_2022)
    case = replace(with_own_script(make_case(["h1"])), differs={}, writable=True)
    rules = judge_folders(case, [folder]).rules
    assert (rules.stamp, rules.doubt) == (
        None,
        "its script works in a copy of its code that it may change (CASE_WRITABLE)",
    )


def test_counted_samples_go_before_a_reported_rate(folder: Path) -> None:
    judgement = judged(folder, {**CASES_OF_2022, "num_trained_samples": 990})
    assert values(judgement, "p_whole", "samples") == [99.0, 990.0]


@pytest.mark.parametrize("name", ["throughput(sps)_raw", "throuhgput(ips)_raw", "training_images_per_second"])
def test_other_words_for_a_rate(folder: Path, name: str) -> None:
    assert values(judged(folder, {"converged": True, name: 3}), "p_whole") == [3.0]


@pytest.mark.parametrize("rate", [0, -1.0, float("nan"), float("inf"), "fast", True, None])
def test_what_is_no_rate(folder: Path, rate: object) -> None:
    finished = {"converged": True, "training_sequences_per_second": rate}
    assert values(judged(folder, finished), "p_whole") == [None]


def test_rates_that_contradict_each_other_are_no_result(folder: Path) -> None:
    judgement = judged(folder, {**LATER_CASES, "throughput(ips)_no_eval": 90.0})
    assert judgement.verdict is Verdict.INVALID


def test_tokens_are_not_samples(folder: Path) -> None:
    assert values(judged(folder, {"converged": True, "training_tokens_per_second": 1e5}), "p_whole") == [None]


def test_the_plans_differences_are_the_stamp(folder: Path) -> None:
    judged(folder, CASES_OF_2022)
    case = make_case(["h1"])
    case = replace(case, files=replace(case.files, script="benchmarks/toy/pytorch/run_pretraining.py"))
    stamps = [
        judge_folders(replace(case, differs=differs), [folder]).rules for differs in (None, {}, {"seed": 1})
    ]
    assert stamps == [Rules(), Rules("closed", {}), Rules("open", {"seed": 1})]
