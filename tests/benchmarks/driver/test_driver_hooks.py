"""What a vendor's hooks change of the task is seen: model, optimizer, and the operations of the forward pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.differences import OptimizerFacts, optimizer_differences
from benchmarks.driver.first_batch import check_case
from benchmarks.driver.inspection import hooks_of_all_ranks
from tests.benchmarks.driver.engines import engine_starter
from utils.code_files import code_files

BOTH = pytest.mark.parametrize("framework", ["pytorch", "paddle"])


def _report(framework: str, folder: Path, data_dir: Path, code: str, **settings: Any) -> dict[str, Any]:
    """What the engine of the tiny BERT reports of a vendor's hooks."""
    extern = folder / "extern"
    extern.mkdir()
    (extern / "hooks.py").write_text(code)
    engine = engine_starter(framework, folder, data_dir, extern, **settings).start()
    check_case(engine, next(engine.training_steps()))
    report: dict[str, Any] = engine.inspector.as_dict()
    return report


def _changed(report: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["what"]: (each["case"], each["vendor"]) for each in report["differs"]}


@BOTH
def test_without_a_vendors_folder_nothing_is_reported(tmp_path: Path, data_dir: Path, framework: str) -> None:
    report = engine_starter(framework, tmp_path, data_dir, tmp_path / "absent").start().inspector.as_dict()
    assert report == {"in_force": {}, "files": {}, "differs": [], "unchecked": [], "flops": {}}


KERNELS = {
    "pytorch": """
import torch
class FastNorm(torch.nn.LayerNorm): ...
class FusedAdamW(torch.optim.AdamW): ...
def convert_model(config, model):
    for layer in model.modules():
        if type(layer) is torch.nn.LayerNorm:
            layer.__class__ = FastNorm
    return model
def create_optimizer(config, model):
    d, weights = config.driver, list(model.parameters())
    groups = [
        {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0},
        {"params": [w for w in weights if w.dim() > 1], "weight_decay": d.weight_decay_rate},
    ]
    return FusedAdamW(groups, lr=d.learning_rate, betas=[d.beta_1, d.beta_2], eps=d.epsilon)
def backward(config, loss, optimizer, scaler):
    loss.backward()
""",
    "paddle": """
import paddle
from benchmarks.driver.paddle.hooks import create_optimizer as own
class FusedAdamW(paddle.optimizer.AdamW): ...
def convert_model(config, model):
    model.marked = True
    return model
def create_optimizer(config, model):
    optimizer = own(config, model)
    optimizer.__class__ = FusedAdamW
    return optimizer
def backward(config, loss, optimizer, scaler):
    loss.backward()
""",
}


@BOTH
def test_other_kernels_are_no_difference(tmp_path: Path, data_dir: Path, framework: str) -> None:
    report = _report(framework, tmp_path, data_dir, KERNELS[framework], weight_decay_rate=0.01)
    assert report["differs"] == []
    assert report["in_force"] == dict.fromkeys(("convert_model", "create_optimizer", "backward"), "hooks.py")
    assert report["files"] == code_files(tmp_path / "extern")
    unchecked = "; ".join(report["unchecked"])
    assert "backward: that the gradients are those of the loss" in unchecked
    assert "what the code of extern/ does besides" in unchecked
    if framework == "pytorch":
        flops = report["flops"]
        for mode in ("training", "evaluation"):
            assert flops[f"forward_of_case_in_{mode}"] == flops[f"forward_of_vendor_in_{mode}"] > 0
        assert flops["training_declared"] > 0
    else:
        assert "model FLOPs: PaddlePaddle has no counter" in unchecked


SGD = {
    "pytorch": "import torch\n"
    "def create_optimizer(config, model):\n"
    "    return torch.optim.SGD(model.parameters(), lr=config.driver.learning_rate)\n",
    "paddle": "import paddle\n"
    "def create_optimizer(config, model):\n"
    "    return paddle.optimizer.SGD(config.driver.learning_rate, parameters=model.parameters())\n",
}


@BOTH
def test_another_optimizer_is_seen(tmp_path: Path, data_dir: Path, framework: str) -> None:
    changed = _changed(_report(framework, tmp_path, data_dir, SGD[framework]))
    case, vendor = changed["optimizer"]
    assert case.startswith("adamw (") and vendor.startswith("sgd (")
    assert "optimizer's betas" in changed


TUNED = """
from benchmarks.driver.{framework}.optimizers import make_optimizer
from dataclasses import replace
def create_optimizer(config, model):
    return make_optimizer(replace(config.driver, {change}), model)
"""


@BOTH
@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("beta_2=0.95", "optimizer's betas"),
        ("epsilon=1e-4", "optimizer's eps"),
        ("weight_decay_rate=0.5", "optimizer's weight_decay"),
        ("learning_rate=1.0", "optimizer's lr"),
    ],
)
def test_other_settings_are_seen(
    tmp_path: Path, data_dir: Path, framework: str, change: str, what: str
) -> None:
    code = TUNED.format(framework=framework, change=change)
    assert list(_changed(_report(framework, tmp_path, data_dir, code))) == [what]


def test_paddles_clipping_is_the_optimizers(tmp_path: Path, data_dir: Path) -> None:
    code = TUNED.format(framework="paddle", change="max_grad_norm=None")
    changed = _changed(_report("paddle", tmp_path, data_dir, code))
    assert list(changed) == ["optimizer's gradient clipping"]


FEWER = {
    "pytorch": "import torch\n"
    "def convert_model(config, model):\n"
    "    next(model.parameters()).requires_grad_(False)\n"
    "    return model\n",
    "paddle": "def convert_model(config, model):\n"
    "    model.parameters()[0].stop_gradient = True\n"
    "    return model\n",
}
OTHER_VALUES = {
    "pytorch": "import torch\n"
    "def convert_model(config, model):\n"
    "    with torch.no_grad():\n"
    "        next(model.parameters()).mul_(0.5)\n"
    "    return model\n",
    "paddle": "def convert_model(config, model):\n"
    "    first = model.parameters()[0]\n"
    "    first.set_value(first * 0.5)\n"
    "    return model\n",
}


@BOTH
def test_frozen_weights_are_seen(tmp_path: Path, data_dir: Path, framework: str) -> None:
    (what,) = _changed(_report(framework, tmp_path, data_dir, FEWER[framework]))
    assert what.startswith("whether it is trained of ")


@BOTH
def test_other_initial_values_are_seen(tmp_path: Path, data_dir: Path, framework: str) -> None:
    (what,) = _changed(_report(framework, tmp_path, data_dir, OTHER_VALUES[framework]))
    assert what.startswith("initial values of ")


def test_weights_that_are_held_in_half_precision_are_seen(tmp_path: Path, data_dir: Path) -> None:
    code = "def model_to_fp16(config, model, optimizer):\n    return model.bfloat16(), optimizer\n"
    changed = _changed(_report_of_the_start(tmp_path, data_dir, code))
    assert changed["optimizer's dtype"][0].startswith("float32 ")
    assert changed["optimizer's dtype"][1].startswith("bfloat16 ")
    assert _dtype_difference(changed) == ("float32", "bfloat16 (initial values not compared)")


def test_trained_weights_in_half_precision_are_seen(tmp_path: Path, data_dir: Path) -> None:
    """The case's optimizer is of the case's model: that of the hook's would be in half precision as well."""
    code = """
import torch
from benchmarks.driver.pytorch.hooks import create_optimizer as own
def convert_model(config, model):
    model.load_state_dict({name: torch.ones_like(value) for name, value in model.state_dict().items()})
    return model.bfloat16()
def create_optimizer(config, model):
    return own(config, model)
"""
    changed = _changed(_report_of_the_start(tmp_path, data_dir, code))
    assert _dtype_difference(changed) == ("float32", "bfloat16 (initial values not compared)")
    case, vendor = changed["optimizer's dtype"]
    assert case.startswith("float32 (of ") and vendor.startswith("bfloat16 (of ")
    assert len(changed) == 2


def test_other_dtypes_in_paddle_are_seen(tmp_path: Path, data_dir: Path) -> None:
    code = "def convert_model(config, model):\n    return model.to(dtype='float64')\n"
    report = _report_of_the_start(tmp_path, data_dir, code, "paddle")
    assert _dtype_difference(_changed(report)) == ("float32", "float64 (initial values not compared)")


def _dtype_difference(changed: dict[str, tuple[str, str]]) -> tuple[str, str]:
    (what,) = (what for what in changed if what.startswith("dtype of "))
    return changed[what]


def _report_of_the_start(
    folder: Path, data_dir: Path, code: str, framework: str = "pytorch"
) -> dict[str, Any]:
    """Of the engine alone: a model that is not what the case built need not take its batches."""
    extern = folder / "extern"
    extern.mkdir()
    (extern / "hooks.py").write_text(code)
    report: dict[str, Any] = engine_starter(framework, folder, data_dir, extern).start().inspector.as_dict()
    return report


def test_what_a_hook_does_on_another_rank_counts_too() -> None:
    difference = {"hook": "create_optimizer", "what": "optimizer", "case": "adamw", "vendor": "sgd"}
    honest: dict[str, Any] = {
        "in_force": {},
        "files": {"a.py": "1"},
        "differs": [],
        "unchecked": [],
        "flops": {},
    }
    report = hooks_of_all_ranks([honest, {**honest, "differs": [difference]}, {**honest, "files": {}}])
    assert [each["what"] for each in report["differs"]] == ["optimizer on rank 1", "files on rank 2"]
    assert hooks_of_all_ranks([honest, honest]) == honest


def test_tensors_of_other_shapes_make_no_difference_of_settings_that_are_alike() -> None:
    """That the shapes differ is said of the weights."""

    def facts(*settings: tuple[tuple[int, ...], float]) -> OptimizerFacts:
        each = ({"shape": shape, "lr": rate, "amsgrad": False} for shape, rate in settings)
        return OptimizerFacts("AdamW", "adamw", tuple(each))

    case = facts(((4, 8), 0.1), ((8,), 0.2))
    swapped = facts(((4, 8), 0.2), ((8,), 0.1))
    assert [what for what, *_ in optimizer_differences(case, swapped)] == ["optimizer's lr"]
    wider = facts(((4, 9), 0.1), ((9,), 0.2))
    assert [what for what, *_ in optimizer_differences(case, wider)] == ["optimizer's shape"]
    assert "optimizer's lr" in [
        what for what, *_ in optimizer_differences(case, facts(((4, 9), 0.1), ((9,), 0.3)))
    ]
