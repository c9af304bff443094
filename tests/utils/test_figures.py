"""The figures follow from a FINISHED event's raw values by one definition each."""

from __future__ import annotations

from typing import Any

import pytest

from utils import figures as figures_module
from utils.figures import (
    DEFINITIONS,
    GIB,
    HIGHER,
    LOWER,
    Definition,
    Figure,
    Peak,
    figures_from_finished,
    model_flops_utilisation,
)

PEAK = Peak(chips=8, flops=312e12, source="A100 data sheet, dense bf16")

# BERT-large on 8 A100: 600 samples/s of 512 tokens need about 6 x 335e6 x 512 FLOPs a sample.
FINISHED: dict[str, Any] = {
    "e2e_time": 3309.0,
    "init_time": 100.0,
    "raw_train_time": 2000.0,
    "eval_time": 150.0,
    "data_wait_time": 50.0,
    "no_eval_time": 1850.0,
    "pure_compute_time": 1800.0,
    "time_to_target": 1990.0,
    "num_trained_samples": 1_178_000,
    "num_trained_tokens": 500_000_000,
    "global_steps": 1533,
    "final_loss": 1.3,
    "final_mlm_accuracy": 0.713,
    "metric": "mlm_accuracy",
    "model_flops_per_sample": 1.03e12,
    "flops_formula": "6 N T",
    "mem_allocated_bytes": 35 * GIB,
    "mem_reserved_bytes": 36 * GIB,
    "mem_total_bytes": 40 * GIB,
}


def figures(**changes: Any) -> dict[str, Figure]:
    return figures_from_finished({**FINISHED, **changes}, PEAK)


def test_throughputs_divide_by_three_different_times() -> None:
    made = figures()
    assert made["p_whole"].value == pytest.approx(1_178_000 / 2000)
    assert made["p_train"].value == pytest.approx(1_178_000 / 1850)
    assert made["p_core"].value == pytest.approx(1_178_000 / 1800)
    assert made["p_whole"].unit == "samples/s"
    assert made["tokens_per_second"].value == pytest.approx(500_000_000 / 1850)


def test_mfu_with_its_formula_peak_and_source() -> None:
    mfu = figures()["MFU"]
    assert mfu.value == pytest.approx(1.03e12 * (1_178_000 / 1850) / (8 * 312e12))
    assert mfu.value is not None and 0 < mfu.value < 1
    for part in ("6 N T", "8 x 3.12e+14", "A100 data sheet"):
        assert part in mfu.source


def test_mfu_is_of_p_train() -> None:
    """Evaluations are not training: twice the evaluation time leaves the MFU as it is."""
    assert figures(raw_train_time=2150.0, eval_time=300.0)["MFU"].value == figures()["MFU"].value


def test_times_quality_and_memory() -> None:
    made = figures()
    assert made["time_to_target"].value == 1990.0
    assert (made["acc"].value, made["acc"].unit) == (0.713, "mlm_accuracy")
    assert [made[name].value for name in ("mem", "mem_reserved", "mem_total")] == [35.0, 36.0, 40.0]
    assert made["e2e_time"].value == 3309.0


def test_every_figure_has_unit_window_and_source() -> None:
    for made in (figures(), figures_from_finished({}, Peak(1, None, "no peak"))):
        for name, figure in made.items():
            assert figure.unit and figure.window and figure.source and figure.definition, name


def test_the_final_loss_is_of_the_last_training_step_whether_logged_or_not() -> None:
    loss = figures()["final_loss"]
    assert (loss.value, loss.unit, loss.window) == (1.3, "1", "last training step")


def test_what_is_not_measured_is_none_and_says_why() -> None:
    empty = figures_from_finished({}, Peak(1, None, "no peak for cpu"))
    assert {figure.value for figure in empty.values()} == {None}
    assert "no peak for cpu" in empty["MFU"].source
    assert "not reported" in empty["mem"].source


@pytest.mark.parametrize("value", [None, "fast", True, float("nan"), float("inf")])
def test_values_that_are_no_numbers(value: Any) -> None:
    made = figures(num_trained_samples=value)
    assert made["p_whole"].value is made["MFU"].value is made["samples"].value is None


def test_zero_is_measured_and_none_is_not() -> None:
    made = figures(mem_allocated_bytes=0, num_trained_samples=0)
    assert (made["mem"].value, made["p_whole"].value) == (0.0, 0.0)


@pytest.mark.parametrize("peak", [Peak(8, None, ""), Peak(8, 0.0, ""), Peak(0, 1.0, "")])
def test_mfu_without_a_peak(peak: Peak) -> None:
    assert model_flops_utilisation(1e12, 10.0, peak) is None


def test_the_registry_gives_a_figure_its_unit_window_direction_and_definition() -> None:
    for name, definition in DEFINITIONS.items():
        assert definition.name == name
        assert definition.better in (HIGHER, LOWER, None)
        figure = definition.figure(1.0, "a test")
        assert (figure.unit, figure.window, figure.better) == (
            definition.unit,
            definition.window,
            definition.better,
        )
        assert definition.absent and definition.digits > 0
    reported = {name for name, definition in DEFINITIONS.items() if definition.formula}
    assert set(figures()) == reported


def test_a_figure_is_added_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(own: Definition, finished: Any, _: Peak) -> Figure:
        return own.figure(2 * finished["e2e_time"], "twice e2e_time")

    added = Definition("twice", "s", "the run", LOWER, "twice as long", "never", doubled, heading="twice s")
    monkeypatch.setattr(figures_module, "DEFINITIONS", {**DEFINITIONS, "twice": added})
    assert figures()["twice"] == Figure(6618.0, "s", "the run", "twice e2e_time", LOWER, "twice as long")


CONTINUED = {"step": 500, "samples": 384_000, "train_time": 650.5, "file": "/ck/step00000500.ckpt"}


def test_figures_of_a_continued_run_say_which_part_they_are_of() -> None:
    whole, part = figures(), figures(continued=CONTINUED)
    assert {name: figure.value for name, figure in part.items()} == {
        name: figure.value for name, figure in whole.items()
    }
    of_part = "; this part only, continued from step 500"
    for name in ("e2e_time", "raw_train_time", "p_whole", "p_core", "MFU", "samples", "steps", "mem"):
        assert part[name].window == whole[name].window + of_part, name
    assert part["acc"] == whole["acc"]  # of the weights, whoever trained them
    window = "training up to the checkpoint of step 500 (650.5 s) + TRAIN_START..end of the evaluation"
    assert part["time_to_target"].window.startswith(window)
    assert part["time_to_target"].caveat == "the training up to step 500 was not watched by this run"
    assert not any("continued" in figure.window or figure.caveat for figure in whole.values())


@pytest.mark.parametrize("odd", [None, True, "yes", {}, {"file": "x"}])
def test_what_is_no_continuation_is_none(odd: object) -> None:
    assert figures(continued=odd) == figures()
