"""The layered parameters of a case, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from utils.errors import ProblemsError
from utils.parameters import UNKNOWN, Configuration, Layer, resolve

BASE = {
    "hidden_size": 8, "target_accuracy": 0.5, "max_steps": 100, "learning_rate": 1e-3, "name": "x",
    "eval_interval_steps": 10,
}  # fmt: skip
MEASURE = {"case_kind": "measure", "sizes": [1, 2]}
SEARCH = {
    **MEASURE, "search_seconds": 75, "max_trials": 0, "ranks_per_worker": 0, "epochs_by_round": (1, 2), "momentum": 0.9,
    "batch_sizes": (32, 64), "precision": "fp16", "heartbeat_seconds": 2, "lost_after_seconds": 10,
}  # fmt: skip


def _resolved(
    *above: dict[str, Any], base: dict[str, Any] = BASE, mutable: tuple[str, ...] = ()
) -> Configuration:
    layers = [Layer(f"layer {number}", values) for number, values in enumerate(above)]
    return resolve(Layer("_base.py", base), layers, mutable=mutable)


def test_the_layers_override_each_other_in_order() -> None:
    config = _resolved({"learning_rate": 2e-3, "hidden_size": 16}, {"learning_rate": 3e-3})
    assert config.driver.learning_rate == 3e-3  # the command line's
    assert config.case["hidden_size"] == 16  # the vendor's
    assert config.driver.max_steps == 100  # the case's
    assert config.driver.log_freq == 20  # the driver's own


def test_the_target_is_named_after_the_metric() -> None:
    assert (_resolved().driver.target, _resolved().metric) == (0.5, "accuracy")
    assert _resolved({"target_accuracy": 1}).driver.target == 1.0
    assert _resolved(base={"max_steps": 1, "target": 0.2, "eval_interval_steps": None}).metric == ""


def test_what_is_changed_beyond_the_mutable_names_is_listed() -> None:
    config = _resolved({"hidden_size": 16, "learning_rate": 2e-3, "name": "x"}, mutable=("learning_rate",))
    assert config.changed == ("hidden_size",)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"learning_rat": 1.0}, "did you mean learning_rate"),
        ({"target_acuracy": 0.7}, "did you mean target_accuracy"),
        ({"hiden_size": 4}, "did you mean hidden_size"),
        ({"hidden_size": "4"}, "it is str, not int"),
        ({"hidden_size": 4.5}, "it is float, not int"),
        ({"hidden_size": None}, "it is NoneType, not int"),
        ({"train_batch_size": True}, "it is bool, not int"),
        ({"train_batch_size": None}, "it is NoneType, not int"),
        ({"learning_rate": "1e-3"}, "it is str, not float"),
        ({"init_evaluation": 1}, "it is int, not bool"),
        ({"init_evaluation": None}, "it is NoneType, not bool"),
        ({"max_steps": 1.5}, "it is float, not int | None"),
        ({"train_batch_size": 0}, "at least 1"),
        ({"save_steps": 0}, "at least 1, or None"),
        ({"dist_timeout_seconds": 0}, "above 0"),
        ({"dist_timeout_seconds": float("nan")}, "write a finite number"),
        ({"max_grad_norm": float("inf")}, "write a finite number; None means: do not clip"),
        ({"learning_rate": float("-inf")}, "write a finite number"),
        ({"seed": -1}, "at least 0"),
        ({"learning_rate": -0.5}, "at least 0"),
        ({"warmup_steps": -3}, "at least 0"),
        ({"max_grad_norm": -1.0}, "above 0"),
        ({"seed": 2**70}, f"at most {2**63 - 1}"),
        ({"max_steps": -5}, "at least 1, or None"),
        ({"max_steps": 0}, "at least 1, or None"),
        ({"max_samples_termination": 0}, "at least 1, or None"),
        ({"beta_1": 1.0}, "below 1"),
        ({"beta_2": 1.5}, "below 1"),
        ({"beta_2": -0.1}, "at least 0"),
        ({"end_learning_rate_factor": 1.1}, "at most 1"),
        ({"dist_timeout_seconds": 1e9}, "at most 86400"),
        ({"train_batch_size": 2**31}, f"at most {2**31 - 1}"),
        ({"max_steps": 2**60}, f"at most {2**53}, or None"),
        ({"precision": "fp15"}, "choose one of fp32, bf16, fp16, auto"),
        ({"optimizer": "adagrad"}, "choose one of adamw, lamb, sgd"),
        ({"lr_schedule": "cosine"}, "choose one of linear, constant"),
        ({"max_steps": None}, "nothing ends the run"),
        ({"eval_interval_steps": 5, "eval_interval_samples": 5}, "set one of the two to None"),
        ({"case_kind": "measure"}, "the case's own word (_base.py)"),
    ],
)
def test_a_bad_value_is_named_with_its_file_and_remedy(layer: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemsError) as error:
        _resolved(layer)
    assert message in str(error.value)
    assert next(iter(layer)) in str(error.value)
    assert "layer 0" in str(error.value)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ({"max_steps": "100"}, "it is str, not int | None"),
        ({"precision": "fp15", "max_steps": 1}, "choose one of"),
        ({"case_kind": "mesure"}, "choose one of converge, measure"),
        ({"max_steps": 1, "target_f1": 1, "target_accuracy": 1}, "stands beside target_f1"),
        ({"target_f1": 1}, "nothing ends the run"),
        ({"max_steps": 1}, "write target_<metric> = ..."),
        ({"max_steps": 1, "target_f1": 1}, "nothing says when it is evaluated"),
        ({"max_samples_termination": 9}, "the decay has no end"),
        ({**MEASURE, "windows": 3}, "at least 20"),
        ({**MEASURE, "warmup_agreement": 1.0}, "below 1"),
        ({**MEASURE, "max_warmup_windows": 2}, "less than warmup_windows"),
    ],
)
def test_the_cases_own_file_is_checked_too(base: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemsError) as error:
        _resolved(base=base)
    assert message in str(error.value)
    assert "_base.py" in str(error.value)


@pytest.mark.parametrize("base", [{}, {"sizes": [1, 2], "window_seconds": 0.2}])
def test_a_forgotten_kind_is_the_one_problem(base: dict[str, Any]) -> None:
    with pytest.raises(ProblemsError) as error:
        _resolved({"windows": 30, "precision": "fp32"}, base=base)
    [problem] = error.value.problems
    assert (problem.where, problem.name) == ("_base.py", "case_kind")
    assert 'case_kind = "measure"' in problem.remedy


@pytest.mark.parametrize("layer", [{"eval_interval_samples": 64}, {"eval_interval_steps": None}])
def test_any_layer_may_say_when_it_is_evaluated(layer: dict[str, Any]) -> None:
    base = {name: value for name, value in BASE.items() if name != "eval_interval_steps"}
    assert _resolved(layer, base=base).driver.eval_interval_steps is None


def test_all_problems_are_reported_at_once_those_between_settings_too() -> None:
    both = {"eval_interval_steps": 5, "eval_interval_samples": 5}
    with pytest.raises(ProblemsError) as error:
        _resolved({"hiden_size": 4, "precision": "x", **both}, {"max_step": 1})
    assert len(error.value.problems) == 4


def test_of_a_wrong_value_nothing_else_is_said() -> None:
    with pytest.raises(ProblemsError) as error:
        _resolved({"max_steps": "all"}, base={"target": 0.5, "eval_interval_steps": 9})
    (problem,) = error.value.problems
    assert problem.name == "max_steps"


def test_a_whole_number_may_stand_for_a_float() -> None:
    config = _resolved({"learning_rate": 1, "rate": 2}, base={**BASE, "rate": 0.5})
    assert (type(config.driver.learning_rate), type(config.case["rate"])) == (float, float)


def test_what_only_the_image_can_tell_is_not_judged_here() -> None:
    config = _resolved(
        {"hidden_size": UNKNOWN, "max_steps": UNKNOWN, "dtype": UNKNOWN},
        base={"hidden_size": 8, "target": 1.0, "eval_interval_steps": 9},
    )
    assert config.case["hidden_size"] == 8, "the layer below"
    with pytest.raises(ProblemsError, match="precision"):
        _resolved({"hidden_size": UNKNOWN, "precision": "fp15"})


def test_a_case_that_measures_has_other_settings() -> None:
    config = _resolved({"window_seconds": 1}, base=MEASURE)
    assert (config.kind, config.measurement.window_seconds, config.case) == (
        "measure",
        1.0,
        {"sizes": [1, 2]},
    )
    with pytest.raises(ProblemsError, match="train_batch_size"):
        _resolved({"train_batch_size": 4}, base=MEASURE)
    assert _resolved().kind == "converge"


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"search_seconds": 0}, "above 0"),
        ({"max_trials": -1}, "at least 0"),
        ({"ranks_per_worker": -1}, "at least 0"),
        ({"epochs_by_round": ()}, "one whole number or more"),
        ({"epochs_by_round": (15, 0)}, "at least 1"),
        ({"batch_sizes": (448, 25.6)}, "one whole number or more"),
        ({"momentum": 1.0}, "below 1"),
        ({"precision": "fp8"}, "is nothing that pytorch on cuda computes in"),
        ({"precision": "auto"}, "write 'fp32' or 'bf16' or 'fp16'"),
        ({"lost_after_seconds": 2}, "is not above heartbeat_seconds, 2: every worker would be lost"),
        ({"heartbeat_seconds": 10}, "lost_after_seconds"),
    ],
)
def test_what_no_search_can_be_made_by_is_refused(layer: dict[str, Any], message: str) -> None:
    base = Layer("_base.py", SEARCH)
    assert resolve(base, framework="pytorch", device_type="cuda").case["max_trials"] == 0
    with pytest.raises(ProblemsError) as error:
        resolve(base, [Layer("vendor", layer)], framework="pytorch", device_type="cuda")
    assert message in str(error.value) and len(error.value.problems) == 1
    no_search = {name: value for name, value in {**SEARCH, **layer}.items() if name != "search_seconds"}
    resolve(Layer("_base.py", no_search), framework="pytorch", device_type="cuda")


def test_a_number_that_is_not_finite_is_refused_wherever_it_stands() -> None:
    with pytest.raises(ProblemsError, match="is not finite"):
        _resolved({"sizes": [1.0, {"n": float("nan")}]}, base={**BASE, "sizes": [1.0]})


@pytest.mark.parametrize("settings", [{"optimizer": "lamb"}, {"torch_compile": True}])
def test_what_the_framework_has_not_is_refused(settings: dict[str, Any]) -> None:
    base = Layer("_base.py", BASE)
    resolve(base, [Layer("vendor", settings)], framework="pytorch")
    with pytest.raises(ProblemsError, match="framework has"):
        resolve(base, [Layer("vendor", settings)], framework="paddle")


@pytest.mark.parametrize(
    ("framework", "device_type", "precision", "right"),
    [
        ("pytorch", "cpu", "auto", True),
        ("pytorch", "cpu", "bf16", True),
        ("pytorch", "cuda", "bf16", True),
        ("pytorch", "cuda", "auto", False),
        ("paddle", "cpu", "auto", True),
        ("paddle", "cpu", "fp32", True),
        ("paddle", "cpu", "bf16", False),
        ("paddle", "cuda", "bf16", True),
        ("pytorch", "", "auto", True),
    ],
)
def test_a_precision_is_one_that_the_framework_has_on_the_device(
    framework: str, device_type: str, precision: str, right: bool
) -> None:
    base, vendor = Layer("_base.py", {**BASE, "precision": "bf16"}), Layer("vendor", {"precision": precision})
    if right:
        config = resolve(base, [vendor], framework=framework, device_type=device_type)
        assert config.driver.precision == precision
        return
    with pytest.raises(ProblemsError) as error:
        resolve(base, [vendor], framework=framework, device_type=device_type)
    assert f"is nothing that {framework} on {device_type} computes in" in str(error.value)
    assert "vendor" in str(error.value)
