"""What a case's author forgot is told before anything is launched, with the file and what to write there."""

from __future__ import annotations

import pytest

from tests.run_benchmarks.plan.tree import BASE, CASE, Tree

HOME = "benchmarks/toy/pytorch"


def _only_problem(tree: Tree) -> tuple[str, str, str]:
    """(where, message, remedy) of the one thing that is wrong."""
    _, [problem] = tree.problems()
    return problem.where, problem.message, problem.remedy


@pytest.mark.parametrize(
    ("missing", "remedy"),
    [("case.py", "write the class Case"), ("__init__.py", "an empty file will do")],
)
def test_a_file_that_is_missing(tree: Tree, missing: str, remedy: str) -> None:
    (tree.training / HOME / missing).unlink()
    where, message, what = _only_problem(tree)
    assert where.endswith(f"{HOME}/{missing}") and message == "there is no such file" and remedy in what


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        ("case = 3\n", "", "there is no class Case"),
        ("class Case:\n  def x(:\n", ":2", "syntax error"),
        (
            CASE.replace("    def baseline(self): ...\n", ""),
            ":1",
            "lacks baseline, which a case of the kind converge",
        ),
        (
            CASE.replace("accuracy", "exact_match"),
            ":2",
            "not the metric that _base.py names the target of, accuracy",
        ),
    ],
)
def test_code_that_every_rank_would_refuse(tree: Tree, code: str, line: str, message: str) -> None:
    tree.write(f"{HOME}/case.py", code)
    where, said, _ = _only_problem(tree)
    assert where.endswith(f"{HOME}/case.py{line}") and message in said


@pytest.mark.parametrize(
    "code", ["from .other import Case\n", "from .other import *\n", "class Case(Base): ...\n"]
)
def test_what_only_the_image_can_tell_is_left_to_the_ranks(tree: Tree, code: str) -> None:
    tree.write(f"{HOME}/case.py", code)
    assert tree.load().cases


def test_a_case_that_measures_needs_its_own_method(tree: Tree) -> None:
    tree.write(f"{HOME}/config/_base.py", 'case_kind = "measure"\n')
    tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "")
    _, message, _ = _only_problem(tree)
    assert "lacks operations, which a case of the kind measure has" in message


def test_a_case_without_a_target(tree: Tree) -> None:
    tree.write(f"{HOME}/config/_base.py", BASE.replace("target_accuracy = 0.5\n", ""))
    where, message, remedy = _only_problem(tree)
    assert where.endswith("_base.py") and "has a target" in message and "target_<metric> = ..." in remedy


def test_a_case_without_its_list_of_mutable_names(tree: Tree) -> None:
    (tree.training / HOME / "config/mutable_params.py").unlink()
    where, message, remedy = _only_problem(tree)
    assert (
        where.endswith("mutable_params.py")
        and "would be open" in message
        and "mutable_params = [...]" in remedy
    )
    tree.write(f"{HOME}/config/mutable_params.py", 'mutable_params = "seed"\n')
    assert "is no list of names" in _only_problem(tree)[1]
