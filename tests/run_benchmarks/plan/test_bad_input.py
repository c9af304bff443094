"""Every mistake that a user can make in the config files is found, and the report says what to do."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from run_benchmarks.plan.problems import MOST_PROBLEMS
from tests.run_benchmarks.plan.bad_rows import CONFIG, ROWS, Row
from tests.run_benchmarks.plan.tree import TEST_CONF, TEST_CONF_2022, VENDOR, Tree, make_tree


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_mistake_is_reported_with_file_name_value_and_remedy(tree: Tree, row: Row) -> None:
    tree.configure(test_conf=row.base)
    for file, old, new in row.edits:
        edit(tree, file, old, new)
    exit_code, problems = tree.problems()
    about = [problem for problem in problems if problem.name == row.name]
    assert about, f"nothing says anything of {row.name}: {problems}"
    assert any(
        problem.where.endswith(row.where)
        and problem.value.startswith(row.value)
        and row.remedy in problem.remedy
        for problem in about
    ), about
    assert bool(row.value) == bool(about[0].value)
    assert exit_code == row.exit_code
    assert all(problem.message and problem.remedy for problem in problems)


def edit(tree: Tree, file: str, old: str, new: str) -> None:
    """Replace `old` by `new` once; where `old` is empty, add `new` at the end."""
    folder = tree.config if file in ("test_conf.py", "cluster_conf.py") else tree.training
    path = folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1) if old else text + new)


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ('["n1", "N1"]', "the host stands in n1 too"),
        ('["n1", "n1"]', "the host stands twice"),
        ('["n[1-3]", "n2"]', "the host stands in n[1-3] too"),
        ('["n2", "n[1-3]"]', "n2 stands by itself too"),
        ('["n[1-5]", "n[4-9]"]', "n4, n5 stand in n[1-5] too"),
        ('["n[1-3]", "n[5-8]", "n[2-6]"]', "n[2-3,5-6] stand in n[1-3] and n[5-8] too"),
    ],
)
def test_a_host_that_is_listed_twice_is_told_with_where_else_it_stands(
    hosts: str, said: str, tree: Tree
) -> None:
    tree.configure(cluster_conf=f"HOSTS = {hosts}\n")
    _, problems = tree.problems()
    assert f"{said}; each node rank needs a host of its own" in [problem.message for problem in problems]


@pytest.mark.parametrize("value", ["list(range(100_000))", "{str(i): i for i in range(100_000)}"])
def test_after_very_many_mistakes_no_more_is_looked_at(tree: Tree, value: str) -> None:
    tree.configure(cluster_conf=f"HOSTS = {value}\n")
    exit_code, problems = tree.problems()
    assert exit_code == CONFIG and len(problems) == MOST_PROBLEMS + 1
    assert "what follows is not looked at" in problems[-1].message


@pytest.mark.parametrize(
    ("line", "name"),
    [("MONITOR_INTERVAL = 1e-300", "MONITOR_INTERVAL"), ('MONITORS = {"rapl": 0.0009}', "MONITORS")],
)
def test_no_source_is_sampled_more_often_than_once_in_a_millisecond(tree: Tree, line: str, name: str) -> None:
    edit(tree, "test_conf.py", "", f"\n{line}\n")
    exit_code, (problem,) = tree.problems()
    assert exit_code == CONFIG and problem.name.startswith(name) and "0.001" in f"{problem}", problem


def test_all_mistakes_of_monitors_are_told_at_once(tree: Tree) -> None:
    tree.configure(
        test_conf=f"{TEST_CONF}MONITORS = {{'core': 1, 'cores': 'often', 'rapl': 1e9, 'cpu': 2}}\n"
    )
    _, problems = tree.problems()
    assert [(problem.name, problem.value) for problem in problems] == [
        ("MONITORS", "'core'"),
        ("MONITORS['cores']", "'often'"),
        ("MONITORS['rapl']", "1000000000.0"),
    ]


@pytest.mark.parametrize("written", ["~nosuch/x", "/" + "a" * 300, "\x00"], ids=["home", "long", "zero"])
@pytest.mark.parametrize("name", ["FLAGPERF_LOG_PATH", "PIP_CA_FILE", "PIP_CONFIG_FILE", "PIP_WHEEL_DIRS"])
def test_a_path_that_none_can_be_is_a_problem_of_its_setting(name: str, written: str, tree: Tree) -> None:
    value = [written] if name == "PIP_WHEEL_DIRS" else written
    tree.configure(test_conf=f"{TEST_CONF}{name} = {value!r}\n")
    _, problems = tree.problems()
    assert [problem.name.partition("[")[0] for problem in problems] == [name]


@pytest.mark.parametrize("key", ["ca_file", "pass_file"])
def test_a_meter_whose_file_lies_in_no_home(key: str, tree: Tree) -> None:
    meter = {"address": "https://10.9.1.2", "user": "reader", key: "~nosuch/x"}
    tree.configure(cluster_conf=f'HOSTS = ["node1", "node2"]\nPOWER_METERS = {{"node1": {meter}}}\n')
    _, [problem] = tree.problems()
    assert problem.name.startswith("POWER_METERS")
    assert "'~nosuch/x' begins with a home that is not known" in problem.message


@pytest.mark.parametrize("written", ["5", "[[1]]", "[{}]", "True"])
def test_secrets_that_are_no_list_of_names(written: str, tree: Tree) -> None:
    tree.configure(test_conf=f"{TEST_CONF}SECRETS = {written}\n")
    _, problems = tree.problems()
    assert [problem.name.partition("[")[0] for problem in problems] == ["SECRETS"]


@pytest.mark.parametrize("written", ['__import__("pathlib").Path("/x")', "{1, 2}"])
def test_a_vendor_that_is_no_plain_data(written: str, tree: Tree) -> None:
    tree.configure(test_conf=TEST_CONF.replace('VENDOR = "acme"', f"VENDOR = {written}"))
    _, problems = tree.problems()
    assert "VENDOR" in [problem.name for problem in problems]


def test_there_are_enough_rows() -> None:
    assert len(ROWS) >= 35
    assert len({row.label for row in ROWS}) == len(ROWS)


def test_several_mistakes_in_both_files_are_reported_at_once(tree: Tree) -> None:
    tree.configure(
        cluster_conf='HOSTS = ["node1", "node1"]\nSSH_PORT = "0"\nMASTER_PROT = 29501\n',
        test_conf=(
            'VENDOR = "acme"\nSHM_SIZE = 32\nCLEAR_CACHE = True\n'
            'CASES = {\n"toy:pytorch:X1:1:2": "/d",\n"toi:pytorch:X1:1:2:1": "/d",\n"toy:pytorch:X1:9:2:1": "d",\n}\n'
        ),
    )
    tree.write("acme/vendor.py", VENDOR.replace('DEVICE_TYPE = "acme"', "DEVICE_TYPE = 1"))
    exit_code, problems = tree.problems()
    noted = {(Path(problem.where).name, problem.name) for problem in problems}
    assert noted == {
        ("cluster_conf.py:1", "HOSTS[1]"),
        ("cluster_conf.py:2", "SSH_PORT"),
        ("cluster_conf.py:3", "MASTER_PROT"),
        ("test_conf.py:2", "SHM_SIZE"),
        ("test_conf.py:3", "CLEAR_CACHE"),
        ("test_conf.py:5", "CASES"),
        ("test_conf.py:7", "CASES['toy:pytorch:X1:9:2:1']"),
        ("test_conf.py:7", "toy:pytorch:X1:9:2:1: nnodes"),
        ("test_conf.py:7", "toy:pytorch:X1:9:2:1: config"),
        ("test_conf.py:6", "toi:pytorch:X1:1:2:1: model"),
        ("vendor.py:1", "DEVICE_TYPE"),
    }
    assert exit_code == CONFIG


@pytest.mark.parametrize("name", ["cluster_conf.py", "test_conf.py"])
def test_missing_config_file(tree: Tree, name: str) -> None:
    (tree.config / name).unlink()
    exit_code, problems = tree.problems()
    assert [(problem.where, problem.name) for problem in problems] == [(str(tree.config / name), name)]
    assert "--config" in problems[0].remedy
    assert exit_code == CONFIG


def test_both_config_files_missing_are_both_reported(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    exit_code, problems = Tree(tree.training, tmp_path / "elsewhere").problems()
    assert [problem.name for problem in problems] == ["cluster_conf.py", "test_conf.py"]
    assert exit_code == CONFIG


def test_a_folder_that_is_missing_is_one_problem(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    exit_code, problems = Tree(tree.training, tmp_path / "elsewhere").problems()
    assert [(problem.where, problem.name) for problem in problems] == [
        (str(tmp_path / "elsewhere"), "--config")
    ]
    assert exit_code == CONFIG


def test_one_invalid_case_of_two_launches_nothing_but_is_no_empty_plan(tree: Tree) -> None:
    edit(tree, "test_conf.py", "}\n", '    "toi:pytorch:X1:1:2:1": "/data/toi",\n}\n')
    assert tree.problems()[0] == CONFIG


def test_chosen_case_that_does_not_exist(tree: Tree) -> None:
    exit_code, problems = tree.problems(only=["toy:pytorch:X1:1:2:2"])
    assert exit_code == CONFIG
    assert problems[0].name == "--cases"
    assert problems[0].value == "'toy:pytorch:X1:1:2:2'"
    assert problems[0].remedy.startswith("did you mean toy:pytorch:X1:1:2:1? Or write it into CASES")


def test_not_utf8(tree: Tree) -> None:
    (tree.config / "test_conf.py").write_bytes(b'# -*- coding: latin-1 -*-\nVENDOR = "\xe9"\n')
    exit_code, problems = tree.problems()
    assert (exit_code, problems[0].name, problems[0].remedy) == (
        CONFIG,
        "test_conf.py",
        "save the file as UTF-8",
    )


@pytest.mark.usefixtures("own_fork")  # another user may not ask the other process
def test_no_write_permission_for_the_log_path() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name, ordinary_user(Path(name)) as folder:
        tree = make_tree(folder)
        locked = folder / "locked"
        locked.mkdir(mode=0o555)
        edit(tree, "test_conf.py", "", f"FLAGPERF_LOG_PATH = {str(locked / 'result')!r}\n")
        exit_code, problems = tree.problems()
    assert [(problem.name, problem.value) for problem in problems] == [
        ("FLAGPERF_LOG_PATH", repr(str(locked / "result")))
    ]
    assert f"no permission to write into {locked}" in problems[0].message
    assert exit_code == CONFIG


@contextmanager
def ordinary_user(folder: Path) -> Iterator[Path]:
    """`folder`, owned by the user as whom the block runs: root may write everywhere, so root steps down."""
    if os.geteuid() != 0:
        yield folder
        return
    nobody = 65534
    os.chown(folder, nobody, nobody)
    os.seteuid(nobody)
    try:
        yield folder
    finally:
        os.seteuid(0)


def test_credentials_are_not_shown(tree: Tree) -> None:
    edit(tree, "test_conf.py", "", "PIP_SOURCE = 'ftp://bob:hunter2@mirror.local/simple'\n")
    edit(tree, "test_conf.py", "", "IMAGE_BUILD_ARGS = {'HF_TOKEN': 'hunter2', 'A B': 'c'}\n")
    _, problems = tree.problems()
    assert {problem.name for problem in problems} == {"PIP_SOURCE", "IMAGE_BUILD_ARGS"}
    assert "hunter2" not in "".join(str(problem) for problem in problems)


def test_what_is_wrong_with_a_case_does_not_hide_what_is_wrong_with_its_other_settings(tree: Tree) -> None:
    conf = TEST_CONF_2022.replace('"repeat": 3', '"repeat": 0').replace('"nnodes": 2', '"nnodes": 9')
    tree.configure(test_conf=conf, cluster_conf='HOSTS = ["node1"]\n')
    _, problems = tree.problems()
    assert {problem.name for problem in problems} == {
        "TOY_DEMO_2X1['repeat']",
        "TOY_DEMO_2X1['config']",
        "TOY_DEMO_2X1: nnodes",
    }
    tree.configure(test_conf=TEST_CONF.replace("X1:1:2:1", "X1:9:2:0"))
    _, problems = tree.problems()
    key = "toy:pytorch:X1:9:2:0"
    assert {problem.name for problem in problems} == {"CASES", f"{key}: nnodes", f"{key}: config"}


def test_a_secret_in_a_dict_is_not_shown(tree: Tree) -> None:
    edit(tree, "test_conf.py", "", "IMAGE_BUILD_ARGS = {'HF_TOKEN': 'hun\\nter2'}\n")
    _, [problem] = tree.problems()
    assert problem.name == "IMAGE_BUILD_ARGS['HF_TOKEN']"
    assert "ter2" not in str(problem)
