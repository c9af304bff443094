"""What is wrong with a vendor's hooks is told before anything is launched, with file, line and what to write."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from run_benchmarks.plan.hook_code import _takes, check_hook_code
from run_benchmarks.plan.problems import Problems
from tests.run_benchmarks.plan.tree import Tree
from utils.code_files import code_files
from utils.errors import Problem
from utils.hook_form import HOOKS

HOOK = "def create_optimizer(config, model):\n    return model\n"


def _problems(folder: Path, **files: str) -> list[Problem]:
    for name, code in files.items():
        (folder / f"{name}.py").write_text(code)
    problems = Problems()
    check_hook_code(folder, code_files(folder), problems)
    return problems.all


@pytest.mark.parametrize(
    ("code", "line", "name", "message", "remedy"),
    [
        ("def create_optimizer(config, model:\n", 1, "hooks.py", "syntax error", "correct this line"),
        ("import x\ndef create_optimiser(config, model): ...\n", 2, "create_optimiser", "is no hook",
         "did you mean create_optimizer?"),
        ("def create_optimizer(config): return 1\n", 1, "create_optimizer", "create_optimizer(config, model)",
         "write def create_optimizer(config, model):"),
        ("def backward(config, loss, optimizer): ...\n", 1, "backward", "is called as backward(", "scaler"),
        ("def backward(a, b, c, d, e): ...\n", 1, "backward", "is called as backward(", "scaler"),
        ("def backward(a, b, c, d, *, e): ...\n", 1, "backward", "is called as backward(", "scaler"),
        ("async def backward(a, b, c, d): ...\n", 1, "backward", "is async", "write def"),
        ("def convert_model(config, model):\n    model.eval()\n", 1, "convert_model", "returns nothing",
         "return model"),
        ("if True:\n    def model_to_fp16(c, m, o): return\n", 2, "model_to_fp16", "returns nothing",
         "return model, optimizer"),
        ("x = '\0'\n", 0, "hooks.py", "", "correct"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_hook(
    tmp_path: Path, code: str, line: int, name: str, message: str, remedy: str
) -> None:
    [problem] = _problems(tmp_path, hooks=code)
    assert problem.where.startswith(f"{tmp_path}/hooks.py") and problem.name == name
    assert not line or problem.where.endswith(f":{line}")
    assert message in problem.message and remedy in problem.remedy


@pytest.mark.parametrize(
    "code",
    [
        HOOK,
        "import acme_torch\n" + HOOK,
        "def create_optimizer(*all): return all\n",
        "def create_optimizer(config, model, fused=True): return model\n",
        "@acme.traced\ndef create_optimizer(**all): return all\n",
        "def backward(config, loss, optimizer, scaler): loss.backward()\n",
        "def create_grad_scaler(config, device_type): ...\n",
        "def _create_optimiser(): ...\ndef layers(): ...\nclass Optimiser:\n    def create_optimiser(self): ...\n",
    ],
)
def test_what_a_vendor_may_write(tmp_path: Path, code: str) -> None:
    assert _problems(tmp_path, hooks=code) == []


def test_a_hook_that_stands_in_two_files_and_a_broken_file_below(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "fused.py").write_text("def create_optimiser(:\n")
    twice, broken = sorted(_problems(tmp_path, a=HOOK, b=HOOK), key=lambda each: each.name)
    assert (twice.name, twice.remedy) == (
        "create_optimizer",
        "remove one of the two",
    ) and "too" in twice.message
    assert broken.where == f"{tmp_path}/kernels/fused.py:1"


def test_the_plan_refuses_a_case_with_such_hooks_and_says_all_of_them(tree: Tree) -> None:
    tree.write("acme/toy-pytorch/extern/a.py", "def create_optimiser(config, model): return 1\n")
    tree.write("acme/toy-pytorch/extern/b.py", "def backward(loss): ...\n")
    exit_code, problems = tree.problems()
    assert (exit_code, [problem.name for problem in problems]) == (4, ["create_optimiser", "backward"])


def test_what_a_case_of_its_own_script_replaces_is_its_own_business(tree: Tree) -> None:
    tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    tree.write("acme/toy-pytorch/extern/a.py", "def create_optimiser(): ...\n")
    assert tree.load().cases


NAMES = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=5)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(NAMES, st.integers(0, 3), st.booleans(), st.booleans(), st.sampled_from(list(HOOKS)))
def test_what_is_refused_is_what_python_would_refuse(
    names: list[str], defaults: int, rest: bool, by_name: bool, hook: str
) -> None:
    """Any list of arguments: called as the driver calls it, Python takes it or not."""
    first = len(names) - defaults
    words = [f"{name}=0" if number >= first else name for number, name in enumerate(names)]
    words += ["*rest"] if rest else ["*"] if by_name else []
    words += ["z"] if by_name else []
    code = f"def hook({', '.join(words)}): ..."
    space: dict[str, object] = {}
    exec(code, space)  # noqa: S102 - made of a handful of letters
    function = ast.parse(code).body[0]
    assert isinstance(function, ast.FunctionDef)
    wanted = HOOKS[hook].arguments
    try:
        inspect.signature(space["hook"]).bind(*wanted)  # type: ignore[arg-type]
    except TypeError:
        assert not _takes(function.args, len(wanted))
    else:
        assert _takes(function.args, len(wanted))


def test_code_that_is_nested_deeper_than_python_goes(tmp_path: Path) -> None:
    """Each `elif` is a level of the syntax tree, and each term of a sum."""
    chain = "if x == 0: pass\n" + "".join(f"elif x == {number}: pass\n" for number in range(2000))
    deep = f"def backward(a={'1' + '+1' * 1000}): ...\n"
    [problem] = _problems(tmp_path, chain=chain + "else:\n    def create_optimiser(config, model): ...\n")
    assert problem.name == "create_optimiser"
    (tmp_path / "chain.py").unlink()
    [problem] = _problems(tmp_path, deep=deep)
    assert "backward(...)" in problem.value
