"""What a case's author forgot is told before anything is launched, with the file and what to write there."""

from __future__ import annotations

import os

import pytest

from run_benchmarks.plan.problems import NoValidCaseError
from run_benchmarks.plan.search_limits import search_misfits
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
    where, noted, _ = _only_problem(tree)
    assert where.endswith(f"{HOME}/case.py{line}") and message in noted


def test_code_beside_it_that_is_no_python(tree: Tree) -> None:
    tree.write(f"{HOME}/model.py", "import torch\nclass Net(:\n")
    where, message, _ = _only_problem(tree)
    assert where.endswith(f"{HOME}/model.py:2") and "syntax error" in message


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
    tree.write(f"{HOME}/case.py", "class Case:\n    def work(self, engine, perf_log): ...\n")
    assert tree.load().cases


WORKS = "class Case:\n    roles = {}\n    def work(self, engine, perf_log): ...\n"


def test_the_roles_of_a_searchs_processes(tree: Tree) -> None:
    tree.write(f"{HOME}/config/_base.py", 'case_kind = "measure"\nsearch_seconds = 3600\n')
    tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "")
    tree.write(f"{HOME}/case.py", WORKS.format('("controller", "worker")'))
    assert tree.load().cases[0].roles == ("controller", "worker")
    tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "search_seconds = 10**6\n")
    _, message, remedy = _only_problem(tree)
    assert "is not below the deadline" in message and "CASE_DEADLINE_HOURS" in remedy
    tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "")
    for roles in ('("boss",)', "{[1]: 2}", f"{10**400} + 1j", "open"):
        tree.write(f"{HOME}/case.py", WORKS.format(roles))
        _, message, remedy = _only_problem(tree)
        assert "is not what a case with work may say" in message and "('controller', 'worker')" in remedy


def test_workers_that_do_not_come_out_even_with_a_hosts_processes(tree: Tree) -> None:
    base = 'case_kind = "measure"\nsearch_seconds = 3600\nranks_per_worker = 0\n'
    tree.write(f"{HOME}/config/_base.py", base)
    tree.write(f"{HOME}/case.py", WORKS.format('("controller", "worker")'))
    for ranks in (0, 1, 2):
        tree.write("acme/toy-pytorch/config/config_X1x1x2.py", f"ranks_per_worker = {ranks}\n")
        assert tree.load().cases
    tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "ranks_per_worker = 4\n")
    _, message, remedy = _only_problem(tree)
    assert "does not divide the 2 processes of a host" in message and "0: one worker" in remedy


def test_a_search_names_its_precision() -> None:
    """On a processor another case may leave it to what all its ranks compute natively."""
    ((name, misfit),) = search_misfits({"precision": "auto"}, 2, 24, None)
    assert name == "precision" and "what the first worker comes to" in misfit.message


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


def _wrong_names(tree: Tree, line: str, **files: str) -> list[tuple[str, str, str]]:
    """(where, name, remedy) of what is wrong with a case whose `_base.py` has a line more."""
    tree.write(f"{HOME}/config/_base.py", BASE + line)
    for path, text in files.items():
        tree.write(path, text)
    try:
        tree.load()
    except NoValidCaseError as error:
        return [(problem.where, problem.name, problem.remedy) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gradient_acumulation_steps", "gradient_accumulation_steps"),
        ("weight_decay", "weight_decay_rate"),
        ("batch_size", "eval_batch_size"),
        ("learning_rat", "learning_rate"),
    ],
)
def test_a_misspelt_setting_of_the_driver(tree: Tree, name: str, meant: str) -> None:
    [(where, noted, remedy)] = _wrong_names(tree, f"{name} = 2\n")
    assert where.endswith("_base.py:6") and noted == name and f"did you mean {meant}?" in remedy


@pytest.mark.parametrize("name", ["vocab_size", "width", "num_layers", "init_checkpoint"])
def test_a_name_of_the_cases_own_may_be_read_by_a_library(tree: Tree, name: str) -> None:
    assert _wrong_names(tree, f"{name} = 2\n") == []


def test_a_name_that_the_cases_code_uses_is_its_own(tree: Tree) -> None:
    line, reads = "weight_decay = 2\n", 'def f(context): return context.settings["weight_decay"]\n'
    listed = {f"{HOME}/config/mutable_params.py": 'mutable_params = ["weight_decay"]\n'}
    assert len(_wrong_names(tree, line, **listed)) == 1, "the list of mutable names is no use of it"
    for path in (f"{HOME}/model.py", "benchmarks/toy/parts.py", "acme/toy-pytorch/extern/_parts.py"):
        assert _wrong_names(tree, line, **{path: reads}) == []
        (tree.training / path).unlink()


def test_a_case_that_says_nothing_of_evaluation(tree: Tree) -> None:
    tree.write(f"{HOME}/config/_base.py", BASE.replace("eval_interval_steps", "eval_interval_step"))
    _, problems = tree.problems()
    assert [problem.name for problem in problems] == ["eval_interval_step", "eval_interval_steps"]
    assert "nothing says when it is evaluated" in problems[1].message


def test_the_driver_knows_one_direction_of_a_metric(tree: Tree) -> None:
    tree.write(f"{HOME}/config/_base.py", BASE + 'metric_better = "lower"\n')
    where, message, remedy = _only_problem(tree)
    assert where.endswith(f"{HOME}/config/_base.py:{BASE.count(chr(10)) + 1}")
    assert "the larger metric is the better one" in message and "negate" in remedy


def test_a_pipe_among_the_code_is_not_waited_for(tree: Tree) -> None:
    """Neither where the code is parsed nor where a name is looked for in it."""
    os.mkfifo(tree.training / HOME / "x.py")
    os.mkfifo(tree.training / HOME / "../data.py")
    where, message, _ = _only_problem(tree)
    assert where.endswith(f"{HOME}/x.py") and message == "is no regular file"
    tree.write(f"{HOME}/config/_base.py", BASE + "max_stepz = 3\n")
    _, problems = tree.problems()
    assert {problem.name for problem in problems} == {"x.py", "max_stepz"}


def test_a_folder_with_a_files_name_is_no_code(tree: Tree) -> None:
    (tree.training / HOME / "x.py").mkdir()
    tree.write(f"{HOME}/config/_base.py", BASE + "max_stepz = 3\n")
    _, problems = tree.problems()
    messages = {problem.name: problem.message for problem in problems}
    assert messages.pop("x.py") == "is a folder, not a file"
    assert "it has no effect" in messages.pop("max_stepz") and not messages
