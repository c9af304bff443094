"""What the evaluations and times of a script of a case's own say of the target that it says it met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.results.quality import falls
from run_benchmarks.results.round_result import RoundResult
from tests.run_benchmarks.builders import START_MS, judge_folders, make_case, with_own_script, write_rank_log
from utils.events import Event, EventName
from utils.records import Verdict

TRAINED_S = 20.0
UNPROVED = "that it converged is not proved: no EVALUATE met target_"


def judged(
    folder: Path,
    values: Sequence[float | str | dict[str, float]],
    metric: str = "accuracy",
    target: float = 0.75,
    aim: str = "",
    **finished: Any,
) -> RoundResult:
    """A script that evaluates every 2 s, and says that it converged."""
    at = [START_MS + 2_000 * (number + 1) for number in range(len(values))]
    told = {
        "converged": True,
        "num_trained_samples": 360_000,
        "global_steps": 1000,
        "raw_train_time": TRAINED_S,
    }
    events = [
        Event(EventName.TRAIN_START, {}, START_MS),
        *(
            Event(EventName.EVALUATE, value if isinstance(value, dict) else {metric: value}, when)
            for value, when in zip(values, at, strict=True)
        ),
        Event(EventName.TRAIN_END, {}, START_MS + int(TRAINED_S * 1000)),
        Event(EventName.FINISHED, {**told, **finished}, START_MS + int(TRAINED_S * 1000) + 10),
    ]
    write_rank_log(folder / "h1_noderank0", events)
    name = aim or metric.removeprefix("eval_")
    case = replace(with_own_script(make_case(["h1"])), parameters={f"target_{name}": target}, differs={})
    result = judge_folders(case, [folder / "h1_noderank0"])
    assert result.verdict is Verdict.CONVERGED, result.failure
    return result


@pytest.mark.parametrize(
    ("values", "metric", "target", "final", "best"),
    [
        ((0.1, 0.2), "accuracy", 0.75, 0.76, "0.2"),
        ((0.1, 0.7492), "accuracy", 0.75, 0.75, "0.7492"),
        ((10.0, 20.0), "accuracy", 0.75, 0.76, "20"),
        ((0.1, 0.2), "eval_accuracy", 0.75, 0.76, "0.2"),
        ((30.0, 20.0), "ppl", 10.0, 9.0, "20"),
        ((0.1, 0.7, 0.2), "accuracy", 0.75, 0.76, "0.7"),
        ((10.0, 20.0), "mAP", 0.75, 0.76, "20"),
        ((0.1, 0.2), "accuracy", 75.0, 76.0, "0.2"),
        ((0.1, 0.005), "accuracy", 75.0, 76.0, "0.1"),
        ((0.1, 0.9), "bleu", 75.0, 190.0, "0.9"),
        ((3.0, 1.2), "loss", 1.0, 0.9, "1.2"),  # and not 0.012
        (("0.1", "0.2"), "accuracy", 0.75, 0.76, "0.2"),
    ],
)
def test_evaluations_of_which_none_met_the_target_prove_nothing(
    values: tuple[float | str, ...], metric: str, target: float, final: float, best: str, tmp_path: Path
) -> None:
    name = metric.removeprefix("eval_")
    result = judged(tmp_path, values, metric, target, **{f"final_{name}": final})
    why = f"{UNPROVED}{name} = {target:g}, the best says {best}"
    assert result.rules.stamp is None and why in result.rules.doubt and result.rules.doubt in result.notes
    assert result.figures["time_to_target"].value is None


@pytest.mark.parametrize(
    ("values", "final"),
    [
        ((0.1, 0.76), 0.76),
        ((0.1, 0.76, 0.5), 0.76),  # it may train on
        ((0.1, 0.7493), 0.75),  # logs round
        ((0.1, 0.7493, 0.5), 0.75),
        ((0, "0.76"), "0.76"),
        ((12.0, 76.0, 75.0), 0.75),
        (({"accuracy": 0.2, "eval_accuracy": 0.76},), 0.76),  # of which one is the training's
        (({"accuracy": 0.76, "eval_accuracy": 0.2},), 0.76),
        ((), 0.76),
    ],
)
def test_evaluations_that_do_not_contradict_finished(
    values: tuple[float | str | dict[str, float], ...], final: float | str, tmp_path: Path
) -> None:
    assert judged(tmp_path, values, final_accuracy=final).rules.stamp == "closed"


@pytest.mark.parametrize(
    ("values", "metric", "target", "final"),
    [
        ((0.1, 0.76), "accuracy", 75.0, 76.0),
        ((0.1, 0.76, 0.5), "mIoU", 75.0, 75.0),
        ((0.1, 0.7493), "rouge1", 75.0, 75.0),
        ((20.0, 8.5), "wer", 0.09, 0.085),
    ],
)
def test_of_evaluations_and_target_one_in_per_cent_as_finished_bears_out(
    values: tuple[float, ...], metric: str, target: float, final: float, tmp_path: Path
) -> None:
    result = judged(tmp_path, values, metric, target, **{f"final_{metric}": final})
    assert result.rules.stamp == "closed" and result.figures["time_to_target"].value is None
    assert not result.notes


@pytest.mark.parametrize(
    ("value", "met_s"),
    [("0.76", 4.0), ({"accuracy": 0.2, "eval_accuracy": 0.76}, 4.0), ({"eval_accuracy": 0.76}, 4.0)],
)
def test_when_the_target_was_met(value: str | dict[str, float], met_s: float, tmp_path: Path) -> None:
    first = {"accuracy": 0.9, "eval_accuracy": 0.1}  # the training's own accuracy meets nothing
    result = judged(tmp_path, (first, value, 0.77), final_accuracy=0.76)
    assert result.figures["time_to_target"].value == met_s and result.rules.stamp == "closed"


def test_evaluations_of_another_metric_say_nothing_of_it(tmp_path: Path) -> None:
    result = judged(tmp_path, (0.1, 0.2), "accuracy", aim="f1", final_f1=0.76)
    assert result.rules.stamp == "closed" and not result.notes


@pytest.mark.parametrize(
    ("values", "metric"),
    [
        ((12.0, 45.0, 76.0), "accuracy"),
        ((0.8, 45.0, 76.0), "accuracy"),  # of which the first is one in per cent too
        ((31.0, 76.0), "eval_acc1"),
    ],
)
def test_evaluations_in_per_cent_do_not_tell_when_a_part_of_one_was_met(
    values: tuple[float, ...], metric: str, tmp_path: Path
) -> None:
    result = judged(tmp_path, values, metric, **{f"final_{metric.removeprefix('eval_')}": 0.76})
    assert result.figures["time_to_target"].value is None and result.rules.stamp == "closed"
    (note,) = (note for note in result.notes if note.startswith("EVALUATE says that "))
    assert "more than all, and its target is 0.75" in note


@pytest.mark.parametrize(
    "metric",
    ["mAP", "auc", "f1", "map_bbox", "iou", "dice", "precision", "recall", "top1", "bleu", "MMLU"],
)
def test_the_unit_shows_in_finished_whatever_the_name(metric: str, tmp_path: Path) -> None:
    result = judged(tmp_path, (45.0, 76.0), metric, **{f"final_{metric}": 0.76})
    assert result.figures["time_to_target"].value is None and result.rules.stamp == "closed"
    (note,) = (note for note in result.notes if note.startswith("EVALUATE says that "))
    assert f"{metric} is 76, and FINISHED that it is 0.76, and its target is 0.75" in note


@pytest.mark.parametrize("metric", ["f1", "dice", "mAP"])
def test_what_meets_the_target_in_per_cent_too_does_not_tell_when_it_was_met(
    metric: str, tmp_path: Path
) -> None:
    result = judged(tmp_path, (20.0, 90.0), metric, 0.9, **{f"final_{metric}": 90.0})
    assert result.figures["time_to_target"].value is None and result.rules.stamp == "closed"
    (note,) = (note for note in result.notes if note.startswith("EVALUATE says that "))
    assert f"{metric} is 90, and FINISHED that it is 90, and its target is 0.9" in note


@pytest.mark.parametrize(
    ("values", "metric", "target", "final"),
    [
        ((0.5, 3.0), "reward", 0.75, 3.0),
        ((0.3, 2.4), "reward", 0.5, 0.8),  # which is noisy
        ((1.2, 0.9), "psnr_ratio", 0.75, 0.9),
        ((9.0, 0.7), "loss", 0.75, 0.7),
        ((12.0, 45.0), "mAP", 40.0, 45.0),
    ],
)
def test_what_is_of_one_unit_tells_when_the_target_was_met(
    values: tuple[float, ...], metric: str, target: float, final: float, tmp_path: Path
) -> None:
    result = judged(tmp_path, values, metric, target, **{f"final_{metric}": final})
    assert result.figures["time_to_target"].value is not None
    assert not any(note.startswith("EVALUATE says that ") for note in result.notes)


def test_evaluations_and_target_in_per_cent(tmp_path: Path) -> None:
    result = judged(tmp_path, (12.0, 76.0), target=75.0, final_accuracy=76.0)
    assert result.figures["time_to_target"].value == 4.0 and not result.notes


@pytest.mark.parametrize("name", ["no_eval_time", "train_no_eval_time", "pure_compute_time"])
@pytest.mark.parametrize(("part", "is_doubted"), [(0.0, False), (0.0001, True), (0.99, True), (1.01, False)])
def test_a_rate_is_of_time_that_was_trained_in(
    name: str, part: float, is_doubted: bool, tmp_path: Path
) -> None:
    result = judged(tmp_path, (0.76,), final_accuracy=0.76, **{name: part})
    rate = result.figures["p_core" if name == "pure_compute_time" else "p_train"].value
    assert (rate is None) is (part == 0)
    assert (result.rules.stamp is None) is is_doubted
    assert (f"{part:g} s, of 20 s of training, is not proved" in result.rules.doubt) is is_doubted


@pytest.mark.parametrize(
    "metric", ["bpc", "val_bpb", "bits_per_char", "bits_per_byte", "bits_per_dim", "eer"]
)
def test_metrics_that_fall(metric: str) -> None:
    assert falls(metric) and not falls(f"neg_{metric}")


@pytest.mark.parametrize("metric", ["bits_per_second", "bits_per_s", "career", "peer_review", "bpcount"])
def test_metrics_that_do_not(metric: str) -> None:
    assert not falls(metric)
