"""Folders of existing FlagPerf: a vendor without vendor.py, a case with a script and a config of its own."""

from __future__ import annotations

import pytest

from run_benchmarks.plan_notes import notes_of
from tests.run_benchmarks.plan.test_bad_input import edit
from tests.run_benchmarks.plan.tree import BASE, Tree

CONFIG = "acme/toy-pytorch/config/config_X1x1x2.py"
MUTABLE = "benchmarks/toy/pytorch/config/mutable_params.py"
DEVICES = 'ACCE_CONTAINER_OPT = " --device=/dev/acme"\nACCE_VISIBLE_DEVICE_ENV_NAME = "ACME_VISIBLE"\n'


@pytest.fixture
def existing(tree: Tree) -> Tree:
    (tree.training / "acme/vendor.py").unlink()
    tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    edit(tree, "test_conf.py", "", DEVICES)
    return tree


def test_vendor_without_vendor_py(existing: Tree) -> None:
    plan = existing.load()
    [case] = plan.cases
    assert (case.vendor.name, case.vendor.described, case.vendor.list_devices_command) == ("acme", False, ())
    assert case.container_options == ("--device=/dev/acme",)
    assert case.visible_devices_env == "ACME_VISIBLE"
    assert (case.chip, case.parameters["train_batch_size"]) == (None, 16)


def test_versioned_image_of_such_a_vendor(existing: Tree) -> None:
    edit(existing, "test_conf.py", "toy:pytorch:", "toy:pytorch_2.1:")
    assert existing.load().cases[0].files.dockerfile_dir == "acme/docker_image/pytorch_2.1"


@pytest.mark.parametrize("line", DEVICES.splitlines())
def test_test_conf_must_say_what_no_vendor_py_says(existing: Tree, line: str) -> None:
    edit(existing, "test_conf.py", f"{line}\n", "")
    exit_code, [problem] = existing.problems()
    assert (exit_code, problem.name) == (2, line.partition(" ")[0])
    assert "acme/vendor.py" in problem.message and '""' in problem.remedy
    edit(existing, "test_conf.py", "", f'{problem.name} = ""\n')
    assert existing.load().cases[0].vendor.name == "acme"


def test_the_shared_driver_needs_vendor_py(existing: Tree) -> None:
    (existing.training / "benchmarks/toy/pytorch/run_pretraining.py").unlink()
    _, [problem] = existing.problems()
    assert "acme/vendor.py, which is missing" in problem.message
    assert "its own run_pretraining.py" in problem.remedy


def test_a_misspelt_vendor_is_told_of_those_without_vendor_py_too(existing: Tree) -> None:
    edit(existing, "test_conf.py", '"acme"', '"acmee"')
    _, problems = existing.problems()
    assert "write one of: acme" in problems[0].remedy


# ---- closed or open


@pytest.mark.parametrize(
    ("base", "config", "differs"),
    [
        ("", "train_batch_size = 16", {}),
        ("", "train_batch_size = 16\nhidden_size = 128", {}),  # as the case has it
        ("", "hidden_size = 64", {"hidden_size": 64}),
        ("", "ddp_type = 'native'", {"ddp_type": "native"}),  # not a name of the case
        ("", "_scale = 3\ntrain_batch_size = _scale", {}),
        ("import no_such_framework\n", "hidden_size = 64", {"hidden_size": 64}),
        ("from .train.event import Base\n", "train_batch_size = 2", {}),
        (
            "",
            "import no_such_framework\nhidden_size = no_such_framework.width()",
            {"hidden_size": "(made by code that only the image can run)"},
        ),
    ],
    ids=str,
)
def test_what_a_vendor_changed(existing: Tree, base: str, config: str, differs: dict[str, object]) -> None:
    existing.write("benchmarks/toy/pytorch/config/_base.py", base + BASE)
    existing.write(MUTABLE, "mutable_params = ['train_batch_size']\nmutable_params += ['lr']\n")
    existing.write(CONFIG, f"{config}\n")
    assert existing.load().cases[0].differs == differs


def test_without_a_list_of_mutable_names_nobody_knows(existing: Tree) -> None:
    (existing.training / MUTABLE).unlink()
    assert existing.load().cases[0].differs is None
    existing.write(MUTABLE, "mutable_params = 'train_batch_size'\n")
    assert existing.load().cases[0].differs is None


def test_what_a_vendor_changed_of_a_case_of_the_shared_driver(tree: Tree) -> None:
    assert tree.load().cases[0].differs == {}
    tree.write(MUTABLE, "mutable_params = []\n")
    assert tree.load().cases[0].differs == {"train_batch_size": 16}


# ---- whose driver

LOOKS_UP = "import os, sys\nsys.path.append(os.path.join('.', '../../'))\n"


@pytest.mark.parametrize(
    ("script", "refused"),
    [
        (f"{LOOKS_UP}import driver\n", True),
        (f"{LOOKS_UP}def main():\n    from driver.config_manager import activate\n", True),
        ("from driver import Driver\n", False),  # installed in the image
        (f"{LOOKS_UP}from train.driver import Driver\nfrom .driver import x\n", False),
        (f"{LOOKS_UP}print 'python 2'\nimport driver\n", True),
    ],
)
def test_a_script_that_looks_for_a_driver(existing: Tree, script: str, refused: bool) -> None:
    existing.write("benchmarks/toy/pytorch/run_pretraining.py", script)
    if refused:
        _, [problem] = existing.problems()
        assert "benchmarks/toy/pytorch/driver" in problem.remedy
        existing.write("benchmarks/toy/pytorch/driver/__init__.py", "")
    assert existing.load().cases[0].files.script_args == ()


def test_a_script_may_name_a_chip_that_its_vendor_does_not_list(tree: Tree) -> None:
    """Its devices are not checked, and there is no MFU: that is said."""
    tree.write("acme/toy-pytorch/config/config_TP1PP2Z9x1x2.py", "train_batch_size = 4\n")
    edit(tree, "test_conf.py", ":X1:", ":TP1PP2Z9:")
    _, [problem] = tree.problems()
    assert "such chip" in problem.message, "the shared driver's result needs its peak"
    tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    plan = tree.load()
    assert plan.cases[0].chip is None
    assert any("CHIPS has no TP1PP2Z9: devices of any kind pass" in note for note in notes_of(plan))


@pytest.mark.parametrize("framework", ["in_container", "in_cluster"])
def test_what_something_else_starts_is_refused_by_name(existing: Tree, framework: str) -> None:
    edit(existing, "test_conf.py", "toy:pytorch:", f"toy:{framework}:")
    exit_code, [problem] = existing.problems()
    assert exit_code == 4
    assert problem.value == repr(framework)
    assert "is not run here: it is started by" in problem.message


def test_where_the_environment_says_that_this_is_a_container_none_is_started(
    existing: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXEC_IN_CONTAINER", "True")
    exit_code, [problem] = existing.problems()
    assert (exit_code, problem.name) == (2, "RUNTIME")
    assert 'set RUNTIME = "process"' in problem.remedy
    edit(existing, "test_conf.py", "", 'RUNTIME = "process"\n')
    assert existing.load().run.runtime == "process"


def test_without_images_nobody_builds_the_vendors_extension(existing: Tree) -> None:
    existing.write("acme/toy-pytorch/csrc/setup.py", "")
    assert not any("csrc" in note for note in notes_of(existing.load()))
    edit(existing, "test_conf.py", "", 'RUNTIME = "process"\n')
    assert any("csrc/setup.py: is built into images alone" in note for note in notes_of(existing.load()))


PARSING = 'parser.add_argument("--extern_config_file")\n'


@pytest.mark.parametrize(
    ("script", "driver", "takes_vendor"),
    [
        ("", "", True),
        ("from driver import base\n", PARSING, False),
        ("from driver import base\n", f'{PARSING}parser.add_argument("--vendor")\n', True),
        (f'{PARSING}parser.add_argument("--vendor")\n', PARSING, True),
        (PARSING, "", False),
    ],
)
def test_a_script_of_the_first_contract_gets_no_vendor(
    existing: Tree, script: str, driver: str, takes_vendor: bool
) -> None:
    existing.write("benchmarks/toy/pytorch/run_pretraining.py", script)
    for folder in ("driver", "train/driver"):  # beside the script, or where its own modules are
        existing.write(f"benchmarks/toy/pytorch/{folder}/base.py", driver)
        assert existing.load().cases[0].files.takes_vendor is takes_vendor
        (existing.training / f"benchmarks/toy/pytorch/{folder}/base.py").unlink()
