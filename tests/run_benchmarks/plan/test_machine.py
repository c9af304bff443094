"""`machine_conf.py`: it says what `test_conf.py` leaves open, is named where it does, and is checked as that is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.config_file import ConfigFile
from run_benchmarks.plan.load import load_plan, load_settings
from run_benchmarks.plan.problems import ConfigError
from tests.run_benchmarks.plan.test_bad_input import edit
from tests.run_benchmarks.plan.tree import Tree

MACHINE = "run_benchmarks/config/machine_conf.py"
BASE_IMAGE = 'VENDORS = {"acme": {"IMAGE_BUILD_ARGS": {"BASE_IMAGE": "made-here:1"}}}\n'


def _append(tree: Tree, lines: str) -> None:
    edit(tree, "test_conf.py", "", lines)


def test_without_the_file_nothing_changes(tree: Tree) -> None:
    machine = tree.load().run.machine
    assert (machine.path, machine.settings, machine.sentence()) == ("", {}, "")


def test_it_says_what_test_conf_leaves_open(tree: Tree) -> None:
    path = tree.write(MACHINE, f'RUNTIME = "process"\nPROCESS_PYTHON = "/opt/py"\n{BASE_IMAGE}')
    _append(tree, "RUNTIME = None\nIMAGE_BUILD_ARGS = {}\n")
    plan = tree.load()
    assert (plan.run.runtime, plan.run.process_python) == ("process", "/opt/py")
    assert plan.cases[0].image_build_args == {"BASE_IMAGE": "made-here:1"}
    assert plan.run.machine.path == str(path)
    assert plan.run.machine.settings == {
        "RUNTIME": "process",
        "PROCESS_PYTHON": "/opt/py",
        "VENDORS['acme']['IMAGE_BUILD_ARGS']['BASE_IMAGE']": "made-here:1",
    }
    assert plan.run.machine.sentence().startswith(
        f"settings of this machine, from {path}: RUNTIME = 'process', "
    )
    assert plan_as_dict(plan)["run"]["machine"]["settings"]["RUNTIME"] == "process"


def test_test_conf_wins_and_the_file_is_not_named_for_it(tree: Tree) -> None:
    tree.write(MACHINE, f'RUNTIME = "process"\nPIP_FROM_HOST = True\n{BASE_IMAGE}')
    _append(tree, 'RUNTIME = "docker"\nPIP_FROM_HOST = False\nIMAGE_BUILD_ARGS = {"BASE_IMAGE": "mine:2"}\n')
    plan = tree.load()
    assert (plan.run.runtime, plan.run.pip.options) == ("docker", {})
    assert plan.cases[0].image_build_args == {"BASE_IMAGE": "mine:2"}
    assert plan.run.machine.settings == {}


def test_what_stands_in_the_place_of_test_conf_is_named_by_its_own_file(tree: Tree) -> None:
    tree.write(MACHINE, 'CONTAINER_ENGINE = "podman"\n')
    above = ConfigFile(Path("plan.json"), {"CLEAR_CACHES": True}, {})
    run = load_plan(tree.config, tree.training, above=above).run
    assert run.clear_caches and run.machine.settings == {"CONTAINER_ENGINE": "podman"}
    wrong = ConfigFile(Path("plan.json"), {"CLEAR_CACHES": "no"}, {})
    with pytest.raises(ConfigError, match=r"^plan\.json: CLEAR_CACHES"):
        load_plan(tree.config, tree.training, above=wrong)


@pytest.mark.parametrize(
    "place", ["IMAGE_BUILD_ARGS = {%s}", "VENDORS = {'acme': {'IMAGE_BUILD_ARGS': {%s}}}"]
)
def test_build_arguments_are_laid_over_each_other_one_by_one(tree: Tree, place: str) -> None:
    tree.write(MACHINE, BASE_IMAGE)
    _append(tree, place % "'http_proxy': 'http://proxy:3128'" + "\n")
    plan = tree.load()
    assert plan.cases[0].image_build_args == {"BASE_IMAGE": "made-here:1", "http_proxy": "http://proxy:3128"}
    assert list(plan.run.machine.settings) == ["VENDORS['acme']['IMAGE_BUILD_ARGS']['BASE_IMAGE']"]


def test_what_it_says_of_one_vendor_is_not_anothers(tree: Tree) -> None:
    tree.write("bolt/vendor.py", "")
    tree.write(MACHINE, BASE_IMAGE.replace("acme", "bolt"))
    plan = tree.load()
    assert plan.cases[0].image_build_args == {}
    assert plan.run.machine.settings == {}


def test_a_vendors_options_may_stand_in_it(tree: Tree) -> None:
    tree.write(MACHINE, 'VENDORS = {"acme": {"ACCE_CONTAINER_OPT": " --device=/dev/acme7"}}\n')
    plan = tree.load()
    assert plan.cases[0].container_options == ("--device=/dev/acme7",)
    assert list(plan.run.machine.settings) == ["VENDORS['acme']['ACCE_CONTAINER_OPT']"]
    _append(tree, 'ACCE_CONTAINER_OPT = ""\n')
    assert tree.load().cases[0].container_options == ()


def test_cleanup_reads_it_too(tree: Tree) -> None:
    tree.write(MACHINE, 'CONTAINER_ENGINE = "podman"\n')
    _, run = load_settings(tree.config, tree.training)
    assert (run.container_engine, run.machine.settings) == ("podman", {"CONTAINER_ENGINE": "podman"})


@pytest.mark.parametrize(
    ("text", "line", "name", "remedy"),
    [
        ('RUNTIME = "proces"\n', 1, "RUNTIME", "did you mean process?"),
        ('\nRUNTIM = "process"\n', 2, "RUNTIM", "did you mean RUNTIME?"),
        ('CASES = {}\n', 1, "CASES", "remove it"),
        ('VENDOR = "acme"\n', 1, "VENDOR", "did you mean VENDORS?"),
        ('PIP_CA_FILE = "/no/such.pem"\n', 1, "PIP_CA_FILE", "correct the path"),
        ('VENDORS = {"acmee": {}}\n', 1, "VENDORS['acmee']", "did you mean acme?"),
        ('VENDORS = {"acme": {\n  "SHM_SIZE": "1G"}}\n', 2, "VENDORS['acme']['SHM_SIZE']", "ACCE_CONTAINER_OPT"),
        ('VENDORS = {"acme": {"IMAGE_BUILD_ARGS": 1}}\n', 1, "VENDORS['acme']['IMAGE_BUILD_ARGS']", "a dict"),
        ("VENDORS = []\n", 1, "VENDORS", "a dict"),
        ("RUNTIME = {1}\n", 1, "RUNTIME", "plain data"),
        ("RUNTIME = process\n", 1, "machine_conf.py", "correct this line"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_it_is_reported_where_it_stands(
    tree: Tree, text: str, line: int, name: str, remedy: str
) -> None:
    path = tree.write(MACHINE, text)
    code, problems = tree.problems()
    assert code == 2
    [problem] = problems
    assert (problem.where, problem.name) == (f"{path}:{line}", name)
    assert remedy in problem.remedy


def test_problems_of_all_three_files_are_reported_at_once(tree: Tree) -> None:
    tree.write(MACHINE, 'RUNTIME = "proces"\n')
    tree.configure(cluster_conf="HOSTS = []\n")
    _append(tree, "SHM_SIZE = 1\n")
    _, problems = tree.problems()
    assert {problem.name for problem in problems} == {"HOSTS", "RUNTIME", "SHM_SIZE"}


@pytest.mark.parametrize(
    "line",
    [
        'PIP_SOURCE = "https://user:sesame@mirror.example.org/simple"',
        'VENDORS = {"acme": {"IMAGE_BUILD_ARGS": {"HF_TOKEN": "sesame"}}}',
        'VENDORS = {"acme": {"ACCE_CONTAINER_OPT": "-e DB_PWD=\'open sesame\' -e A=1"}}',
    ],
)
def test_no_secret_of_it_is_shown(tree: Tree, line: str) -> None:
    tree.write(MACHINE, line + "\n")
    plan = tree.load()
    assert plan.run.machine.settings
    assert "sesame" not in json.dumps(plan_as_dict(plan)) + plan.run.machine.sentence()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("dangling", "is a link that leads nowhere"),
        ("loop", "cannot be reached: Too many levels of symbolic links"),
        ("folder", "is a folder, not a file"),
        ("fifo", "is no regular file"),
        ("ended", "SystemExit: 7: sys.exit(7)"),
    ],
)
def test_what_is_there_but_no_file_that_can_be_read_is_not_passed_over(
    tree: Tree, kind: str, message: str
) -> None:
    path = tree.write(MACHINE, "import sys\nsys.exit(7)\n")
    if kind != "ended":
        path.unlink()
        make = {
            "dangling": lambda: path.symlink_to("nowhere.py"),
            "loop": lambda: path.symlink_to(path.name),
            "folder": path.mkdir,
            "fifo": lambda: os.mkfifo(path),
        }
        make[kind]()
    code, problems = tree.problems()
    assert (code, [problem.message for problem in problems]) == (2, [message])
