"""Which of the tree's files a case gets."""

from __future__ import annotations

import os
from hashlib import sha256

import pytest

from tests.run_benchmarks.plan.test_bad_input import edit
from tests.run_benchmarks.plan.tree import CASE, Tree


def test_case_of_the_shared_driver(tree: Tree) -> None:
    files = tree.load().cases[0].files
    assert files.case_dir == "benchmarks/toy/pytorch"
    assert files.script == "benchmarks/driver/run_pretraining.py"
    assert files.script_args == ("--case_dir", "benchmarks/toy/pytorch")
    assert (files.config_dir, files.config_file) == ("acme/toy-pytorch/config", "config_X1x1x2.py")
    assert files.extern_dir == "acme/toy-pytorch/extern"
    assert files.dockerfile_dir == "acme/docker_image/pytorch"
    assert (files.requirements, files.environment_script, files.install_script) == ((), None, None)


def test_case_with_a_script_of_its_own(tree: Tree) -> None:
    tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    files = tree.load().cases[0].files
    assert (files.script, files.script_args) == ("benchmarks/toy/pytorch/run_pretraining.py", ())


def test_optional_files(tree: Tree) -> None:
    optional = (
        "benchmarks/toy/pytorch/requirements.txt",
        "acme/toy-pytorch/config/requirements.txt",
        "acme/toy-pytorch/config/environment_variables.sh",
        "acme/docker_image/pytorch/pytorch_install.sh",
    )
    for path in optional:
        tree.write(path, "")
    case = tree.load().cases[0]
    files = case.files
    assert (*files.requirements, files.environment_script, files.install_script) == optional
    assert case.environment == {files.environment_script: sha256(b"").hexdigest()}


def test_the_digest_of_a_sourced_file_tells_nothing_of_its_secrets(tree: Tree) -> None:
    path = "acme/toy-pytorch/config/environment_variables.sh"

    def digest(text: str) -> str:
        tree.write(path, text)
        return tree.load().cases[0].environment[path]

    assert digest("export A=1\nexport DB_PASS=1234\n") == digest("export A=1\nexport DB_PASS=9876\n")
    assert digest("export A=1\nexport DB_PASS=1234\n") != digest("export A=2\nexport DB_PASS=1234\n")


def test_a_pipe_in_place_of_a_sourced_file_is_refused(tree: Tree) -> None:
    os.mkfifo(tree.training / "acme/toy-pytorch/config/environment_variables.sh")
    (problem,) = tree.problems()[1]
    assert "is no plain file" in problem.message


UNPARSED = {
    "export DB_PASSWORD=Sup3r(zqSecret": "2: bash cannot parse it (syntax error near unexpected token `(')",
    "export DB_PASSWORD='Sup3r zqSecret": "bash cannot parse it (unexpected EOF while looking for matching `'')",
    "case zqSecret in @(a|b)*) ;; esac": "2: bash cannot parse it (syntax error near unexpected token `(')",
    "case zqSecret zqSecret in": "2: bash cannot parse it (syntax error near unexpected token)",
}


@pytest.mark.parametrize("line", UNPARSED)
def test_a_sourced_file_that_bash_cannot_parse_is_refused_with_its_line(line: str, tree: Tree) -> None:
    """Sourced, it would end there, and the ranks be started without the rest of it."""
    path = tree.write("acme/toy-pytorch/config/environment_variables.sh", f"export A=1\n{line}\nexport B=2\n")
    (problem,) = tree.problems()[1]
    assert UNPARSED[line] in str(problem) and str(problem).startswith(f"{path}:")
    assert "zqSecret" not in str(problem)


@pytest.mark.parametrize(
    "script",
    [
        "shopt -s extglob\nfor a in /opt/!(b|c); do export A=$a; done\nreturn 1\n",
        "if !(\ntrue # don't care\n); then export A=1; fi\n",
        "[ -f /opt/common.sh ] && . /opt/common.sh\ncase x in @(x|y)) export A=1;; esac\n",
        "source /opt/common.sh\ncase x in @(x|y)) export A=1;; esac\n",
    ],
)
def test_what_a_sourced_file_alone_decides_of_its_patterns_is_no_error(script: str, tree: Tree) -> None:
    path = "acme/toy-pytorch/config/environment_variables.sh"
    tree.write(path, script)
    assert tree.load().cases[0].files.environment_script == path


def test_without_bash_a_sourced_file_is_not_parsed(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("acme/toy-pytorch/config/environment_variables.sh", "export A=1(2\n")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert tree.load().cases


@pytest.mark.parametrize("size", [2**20 + 1, 2**43])
def test_a_sourced_file_that_is_no_script_but_data_is_refused_and_not_read_whole(
    size: int, tree: Tree
) -> None:
    """More than a machine's memory fills it, before anything is said of the size of the tree."""
    path = "acme/toy-pytorch/config/environment_variables.sh"
    with (tree.training / path).open("wb") as script:
        script.truncate(size)
    problems = {problem.message: problem for problem in tree.problems()[1]}
    problem = problems["has more than 1048576 characters"]
    assert path in str(problem.value) and "data" in problem.remedy


@pytest.mark.parametrize("installer", ["pytorch_2.1_install.sh", "pytorch_install.sh"])
def test_versioned_framework(tree: Tree, installer: str) -> None:
    """The version chooses the image; the case and the vendor's config are those of the framework."""
    tree.write(f"acme/docker_image/pytorch_2.1/{installer}", "")
    edit(tree, "test_conf.py", "toy:pytorch:", "toy:pytorch_2.1:")
    case = tree.load().cases[0]
    assert (case.settings.framework, case.settings.framework_name) == ("pytorch_2.1", "pytorch")
    assert case.files.dockerfile_dir == "acme/docker_image/pytorch_2.1"
    assert case.files.install_script == f"acme/docker_image/pytorch_2.1/{installer}"
    assert case.files.case_dir == "benchmarks/toy/pytorch"
    assert case.files.config_dir == "acme/toy-pytorch/config"


def test_plain_processes_need_no_image(tree: Tree) -> None:
    edit(tree, "test_conf.py", "toy:pytorch:", "toy:pytorch_9:")
    edit(tree, "test_conf.py", "", 'RUNTIME = "process"\n')
    assert tree.load().cases[0].settings.framework == "pytorch_9"


def test_customized_cases_lie_in_the_vendors_folder(tree: Tree) -> None:
    edit(tree, "test_conf.py", "", 'TEST_TYPE = "customized"\n')
    own = "acme/benchmarks/toy/pytorch"
    tree.write(
        f"{own}/config/_base.py", "max_steps = 1\ntarget_accuracy = 1\neval_interval_steps = 1\nown = 3\n"
    )
    tree.write(f"{own}/config/mutable_params.py", "mutable_params = []\n")
    tree.write(f"{own}/__init__.py", "")
    tree.write(f"{own}/case.py", CASE)
    case = tree.load().cases[0]
    assert case.files.case_dir == "acme/benchmarks/toy/pytorch"
    assert case.parameters["own"] == 3


@pytest.mark.parametrize(
    ("right", "wrong", "rest"),
    [
        ("acme/toy-pytorch/config/config_X1x1x2.py", "config_X1_1x2.py", "else there is: config_X1x2x1"),
        ("acme/toy-pytorch/config/config_X1x1x2.py", "config_X1x1x2.txt", "else there is: config_X1x2x1"),
        ("acme/toy-pytorch", "toy_pytorch", "else there is none yet: CONTRIBUTING.md"),
        ("acme/toy-pytorch/config", "configs", "else there is none yet: CONTRIBUTING.md"),
        ("acme/docker_image/pytorch/Dockerfile", "dockerfile", "else there is: pytorch_2.1"),
    ],
)
def test_what_lies_there_under_nearly_the_right_name_is_named(
    tree: Tree, right: str, wrong: str, rest: str
) -> None:
    path = tree.training / right
    path.rename(path.with_name(wrong))
    _, [problem] = tree.problems()
    assert problem.remedy.startswith(f"rename {wrong} to {path.name}, if that is it; {rest}")


def test_what_has_a_name_of_its_own_is_not_taken_for_a_config(tree: Tree) -> None:
    folder = tree.training / "acme/toy-pytorch/config"
    (folder / "config_X1x1x2.py").rename(folder / "config_common.py")
    _, [problem] = tree.problems()
    assert problem.remedy == "there is: config_X1x2x1; did you mean config_X1x2x1?"


def test_parameters_are_the_vendors_over_the_cases_over_the_drivers(tree: Tree) -> None:
    parameters = tree.load().cases[0].parameters
    assert (parameters["hidden_size"], parameters["target_accuracy"], parameters["max_steps"]) == (
        128,
        0.5,
        100,
    )
    assert (parameters["train_batch_size"], parameters["learning_rate"]) == (16, 1e-3)
    assert "target" not in parameters, "the case has another name for it"


def test_vendor_may_set_what_only_the_driver_knows(tree: Tree) -> None:
    tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "learning_rate = 1\nmax_grad_norm = None\n")
    parameters = tree.load().cases[0].parameters
    assert (parameters["learning_rate"], parameters["max_grad_norm"]) == (1.0, None)


def test_vendor_config_with_a_common_file(tree: Tree) -> None:
    """FlagPerf's usual form: what the configs share stands in config_common.py."""
    tree.write("acme/toy-pytorch/config/config_common.py", "train_batch_size = 4\nmax_steps = 7\n")
    tree.write(
        "acme/toy-pytorch/config/config_X1x1x2.py",
        "from config_common import *\n\ntrain_batch_size = 2 * train_batch_size\n",
    )
    parameters = tree.load().cases[0].parameters
    assert (parameters["train_batch_size"], parameters["max_steps"]) == (8, 7)


def test_vendor_config_that_imports_what_only_images_have(tree: Tree) -> None:
    tree.write(
        "acme/toy-pytorch/config/config_common.py",
        "import no_such_framework\nmax_steps: int = 2 ** 5\n"
        "hidden_size = 64\nhidden_size = no_such_framework.width()\n",
    )
    tree.write(
        "acme/toy-pytorch/config/config_X1x1x2.py",
        "from config_common import *\ntrain_batch_size = max_steps if True else 1\n",
    )
    parameters = tree.load().cases[0].parameters
    assert (parameters["max_steps"], parameters["train_batch_size"]) == (32, 32)
    assert parameters["hidden_size"] == 128, "what the image will make of it is not known here"


def test_case_with_its_own_script_knows_its_own_names(tree: Tree) -> None:
    tree.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    tree.write("acme/toy-pytorch/config/config_X1x1x2.py", "cuda_graph_mode = 'segmented'\n")
    assert tree.load().cases[0].parameters["cuda_graph_mode"] == "segmented"
    (tree.training / "benchmarks/toy/pytorch/config/_base.py").unlink()
    assert tree.load().cases[0].parameters == {"cuda_graph_mode": "segmented"}


def test_shared_driver_missing(tree: Tree) -> None:
    (tree.training / "benchmarks/driver/run_pretraining.py").unlink()
    exit_code, problems = tree.problems()
    assert exit_code == 4
    assert "the checkout is incomplete" in problems[0].remedy


def test_chip_and_its_peaks(tree: Tree) -> None:
    chip = tree.load().cases[0].chip
    assert chip is not None
    assert (chip.name, chip.device_names, chip.memory_gib, chip.source) == (
        "X1",
        ("Acme X1",),
        32.0,
        {"": "a test"},
    )
    assert chip.peak_flops == {"bf16": 1e14}, "a peak of None is not known, and not 0"


def test_vendor_without_chips(tree: Tree) -> None:
    edit(tree, "acme/vendor.py", "CHIPS", "_CHIPS")
    assert tree.load().cases[0].chip is None


def test_vendor_record(tree: Tree) -> None:
    vendor = tree.load().cases[0].vendor
    assert (vendor.name, vendor.folder, vendor.device_type) == ("acme", tree.training / "acme", "acme")
    assert vendor.list_devices_command == ("acme-list",)
    assert vendor.parse_devices("Acme X1\nAcme X1\n") == ["Acme X1", "Acme X1"]


@pytest.mark.parametrize("line", ["-r other.txt", "--constraint=../c.txt", "-e ./package", "../package", "."])
def test_requirements_that_lead_elsewhere_are_refused(line: str, tree: Tree) -> None:
    path = "benchmarks/toy/pytorch/requirements.txt"
    tree.write(path, f"# first\n{line}\n")
    (problem,) = tree.problems()[1]
    assert f"{path}:2" in problem.where and "leads to another file" in problem.message
    tree.write(path, "numpy>=1\n/wheels/of-the-image.whl\n--no-binary=h5py\n")
    assert tree.load().cases
