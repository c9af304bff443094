from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import Layer, read_configuration, resolve
from utils.errors import ProblemsError

BASE = {"hidden_size": 8, "target_accuracy": 0.5, "max_steps": 100, "learning_rate": 1e-3, "name": "x"}


def _resolved(*above: dict[str, Any], mutable: tuple[str, ...] = ()) -> Any:
    layers = [Layer(f"layer {number}", values) for number, values in enumerate(above)]
    return resolve(Layer("_base.py", BASE), layers, metric="accuracy", mutable=mutable)


def test_the_layers_override_each_other_in_order() -> None:
    config = _resolved({"learning_rate": 2e-3, "hidden_size": 16}, {"learning_rate": 3e-3})
    assert config.driver.learning_rate == 3e-3  # the command line's
    assert config.case["hidden_size"] == 16  # the vendor's
    assert config.driver.max_steps == 100  # the case's
    assert config.driver.log_freq == 20  # the driver's own
    assert config.origin["learning_rate"] == "layer 1"
    assert config.origin["log_freq"] == "driver"


def test_the_target_is_named_after_the_metric() -> None:
    assert _resolved().driver.target == 0.5
    assert _resolved({"target_accuracy": 1}).driver.target == 1.0


def test_what_is_changed_beyond_the_mutable_names_is_listed() -> None:
    config = _resolved({"hidden_size": 16, "learning_rate": 2e-3, "name": "x"}, mutable=("learning_rate",))
    assert config.changed == ("hidden_size",)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"learning_rat": 1.0}, "did you mean learning_rate"),
        ({"target_acuracy": 0.7}, "did you mean target_accuracy"),
        ({"hiden_size": 4}, "did you mean hidden_size"),
        ({"hidden_size": "4"}, "is not int"),
        ({"hidden_size": 4.5}, "is not int"),
        ({"train_batch_size": True}, "is not int"),
        ({"learning_rate": "1e-3"}, "is not float"),
        ({"init_evaluation": 1}, "is not bool"),
        ({"init_evaluation": None}, "is not bool"),
        ({"max_steps": 1.5}, "is not int | None"),
        ({"train_batch_size": 0}, "must be at least 1"),
        ({"precision": "bf61"}, "choose one of fp32, bf16, fp16"),
        ({"optimizer": "sgd"}, "choose one of adamw, lamb"),
        ({"lr_schedule": "cosine"}, "choose one of linear, constant"),
        ({"max_steps": None}, "nothing ends the run"),
        ({"eval_interval_steps": 5, "eval_interval_samples": 5}, "set one of the two to None"),
    ],
)
def test_a_bad_value_is_named_with_its_file_and_remedy(layer: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemsError) as error:
        _resolved(layer)
    assert message in str(error.value)
    assert next(iter(layer)) in str(error.value)
    assert "layer 0" in str(error.value)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ProblemsError) as error:
        _resolved({"hiden_size": 4, "precision": "x"}, {"max_step": 1})
    assert len(error.value.problems) == 3


def test_a_whole_number_may_stand_for_a_float() -> None:
    learning_rate = _resolved({"learning_rate": 1}).driver.learning_rate
    assert isinstance(learning_rate, float)


def test_the_files_are_found_by_the_launch_contract(tmp_path: Path) -> None:
    case, vendor = tmp_path / "case" / "config", tmp_path / "vendor"
    case.mkdir(parents=True)
    vendor.mkdir()
    (case / "_base.py").write_text("size = 1\ndepth = 1\nmax_steps = 5\n")
    (case / "mutable_params.py").write_text('mutable_params = ["depth"]\n')
    (vendor / "config_common.py").write_text("size = 2\ndepth = 2\n")
    (vendor / "config_cpux1x1.py").write_text("from config_common import *\ndepth = 3\n")
    given: dict[str, Any] = {
        "case_dir": tmp_path / "case",
        "data_dir": tmp_path,
        "extern_config_dir": vendor,
        "extern_config_file": "config_cpux1x1.py",
    }
    config = read_configuration(LaunchArguments(**given, enable_extern_config=True), "accuracy")
    assert config.case == {"size": 2, "depth": 3}
    assert config.changed == ("size",)

    disabled = read_configuration(LaunchArguments(**given), "accuracy")
    assert disabled.case == {"size": 1, "depth": 1}
    overridden = read_configuration(LaunchArguments(**given, overrides={"size": 9}), "accuracy")
    assert overridden.case["size"] == 9
