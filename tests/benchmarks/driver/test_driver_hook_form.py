"""The hooks' form is that of the driver's own; a vendor's that breaks it is named, with its file."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from benchmarks.driver.hooks import load_hooks
from utils.errors import FlagPerfError
from utils.hook_form import HOOKS


@pytest.mark.parametrize("framework", ["pytorch", "paddle"])
def test_the_drivers_own_hooks_have_it(framework: str) -> None:
    own = importlib.import_module(f"benchmarks.driver.{framework}.hooks")
    for name, form in HOOKS.items():
        assert tuple(inspect.signature(getattr(own, name)).parameters) == form.arguments


def _called(folder: Path, code: str, name: str) -> object:
    (folder / "hooks.py").write_text(code)
    hooks = load_hooks(importlib.import_module("benchmarks.driver.pytorch.hooks"), folder)
    return getattr(hooks, name)(*HOOKS[name].arguments)


@pytest.mark.parametrize(
    ("name", "answer", "message", "remedy"),
    [
        ("convert_model", "None", "the hook convert_model returns nothing", "return model"),
        ("create_optimizer", "None", "the hook create_optimizer returns nothing", "return optimizer"),
        ("model_to_ddp", "None", "the hook model_to_ddp returns nothing", "return model"),
        ("model_to_fp16", "None", "the hook model_to_fp16 returns nothing", "return model, optimizer"),
        ("model_to_fp16", "given[1]", "the hook model_to_fp16 returns str", "return model, optimizer"),
    ],
)
def test_a_hook_that_returns_too_little(
    tmp_path: Path, name: str, answer: str, message: str, remedy: str
) -> None:
    with pytest.raises(FlagPerfError) as error:
        _called(tmp_path, f"def {name}(*given):\n    return {answer}\n", name)
    assert (error.value.message, error.value.remedy) == (message, remedy)
    assert error.value.where == f"{tmp_path}/hooks.py"


@pytest.mark.parametrize("name", ["backward", "create_grad_scaler"])
def test_none_is_an_answer_where_it_may_be(tmp_path: Path, name: str) -> None:
    assert _called(tmp_path, f"def {name}(*given): ...\n", name) is None


def test_what_is_no_function_is_not_passed_over(tmp_path: Path) -> None:
    code = "from functools import partial\nbackward = partial(print, 1)\n"
    with pytest.raises(FlagPerfError, match=r"hooks\.py: the hook backward is no function: partial"):
        _called(tmp_path, code, "backward")
