"""What the two config files say is what the plan holds, in either dialect and any mix of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from run_benchmarks.plan.problems import NoValidCaseError
from run_benchmarks.plan.records import ClusterSettings
from tests.run_benchmarks.plan.test_bad_input import edit
from tests.run_benchmarks.plan.tree import TEST_CONF, TEST_CONF_2022, Tree


def test_later_dialect(tree: Tree) -> None:
    plan = tree.load()
    [case] = plan.cases
    assert case.settings.name == "toy:pytorch:X1:1:2:1"
    assert (case.settings.model, case.settings.framework, case.settings.chip) == ("toy", "pytorch", "X1")
    assert (case.settings.nnodes, case.settings.nproc, case.settings.repeat) == (1, 2, 1)
    assert case.settings.config == "config_X1x1x2"
    assert case.settings.data_dir_host == case.settings.data_dir_container == "/data/toy"
    assert case.hosts == ("node1",)
    assert plan.run.flagperf_path_host == plan.run.flagperf_path_container == "/home/flagperf/training"
    assert plan.training_dir == tree.training


def test_2022_dialect(tree: Tree) -> None:
    tree.configure(test_conf=TEST_CONF_2022)
    plan = tree.load()
    [case] = plan.cases
    assert case.settings.name == "TOY_DEMO_2X1"
    assert (case.settings.config, case.settings.chip) == ("config_X1x2x1", "X1")
    assert (case.settings.nnodes, case.settings.nproc, case.settings.repeat) == (2, 1, 3)
    assert (case.settings.data_dir_host, case.settings.data_dir_container) == ("/data/toy", "/mnt/data/toy")
    assert case.hosts == ("node1", "node2")
    run = plan.run
    assert case.container_options == ("--gpus", "all")
    assert case.visible_devices_env == "CUDA_VISIBLE_DEVICES"
    assert (run.flagperf_path_host, run.flagperf_path_container) == (
        "/home/flagperf/training",
        "/workspace/flagperf/training",
    )
    assert run.log_path == tree.training / "result"
    assert run.log_path_container == "/workspace/flagperf/training/result"
    assert (run.log_level, run.shm_size, run.clear_caches) == ("debug", "64G", True)
    assert run.pip.options == {"index-url": "https://mirror.example.org/simple"}


def test_config_may_be_named_as_a_file(tree: Tree) -> None:
    tree.configure(test_conf=TEST_CONF_2022.replace('"config_X1x2x1"', '"config_X1x2x1.py"'))
    assert tree.load().cases[0].settings.config == "config_X1x2x1"


def test_2022_cases_with_later_paths(tree: Tree) -> None:
    """One path for host and container, and a list of names: a mix that is in use."""
    text = TEST_CONF_2022.replace("FLAGPERF_PATH_HOST", "FLAGPERF_PATH")
    text = text.replace('FLAGPERF_PATH_CONTAINER = "/workspace/flagperf/training"\n', "")
    text = text.replace("FLAGPERF_LOG_PATH_HOST", "FLAGPERF_LOG_PATH").replace('"result"', '"/var/log/fp/"')
    text = text.replace('FLAGPERF_LOG_PATH_CONTAINER = FLAGPERF_PATH_CONTAINER + "/result/"\n', "")
    tree.configure(test_conf=text)
    run = tree.load().run
    assert run.flagperf_path_host == run.flagperf_path_container == "/home/flagperf/training"
    assert (run.log_path, run.log_path_container) == (Path("/var/log/fp"), "/var/log/fp")


def test_ports_as_text_or_number(tree: Tree) -> None:
    tree.configure(
        cluster_conf='HOSTS = ("a", "b")\nSSH_PORT = 2222\nMASTER_PORT = "29511"\nHOSTS_PORTS = ["2222"]\n'
    )
    cluster = tree.load().cluster
    assert (cluster.hosts, cluster.ssh_port, cluster.master_port) == (("a", "b"), 2222, 29511)


def test_every_cluster_setting(tree: Tree) -> None:
    tree.configure(
        cluster_conf=(
            'HOSTS = ["fe80::1"]\nSSH_USER = "alice"\nSSH_ACCEPT_NEW_HOST_KEYS = True\n'
            'SSH_CONNECT_TIMEOUT = 3\nHOST_LOST_AFTER = 30.5\nSSH_PORT = "22"\nMASTER_PORT = 1\n'
        )
    )
    assert tree.load().cluster == ClusterSettings(("fe80::1",), 22, "alice", 3.0, True, 1, 30.5)


def test_only_hosts_are_needed_in_cluster_conf(tree: Tree) -> None:
    tree.configure(cluster_conf='HOSTS = ["node1"]\n')
    assert tree.load().cluster == ClusterSettings(("node1",))


def test_what_is_absent_or_none_is_the_vendors(tree: Tree) -> None:
    for line in ("", "ACCE_CONTAINER_OPT = None\nACCE_VISIBLE_DEVICE_ENV_NAME = None\n"):
        edit(tree, "test_conf.py", "", line)
        [case] = tree.load().cases
        assert case.container_options == ("--device=/dev/acme",)
        assert case.visible_devices_env == "ACME_VISIBLE_DEVICES"


def test_an_empty_text_is_not_absent(tree: Tree) -> None:
    edit(tree, "test_conf.py", "", 'ACCE_CONTAINER_OPT = ""\nACCE_VISIBLE_DEVICE_ENV_NAME = ""\n')
    [case] = tree.load().cases
    assert (case.container_options, case.visible_devices_env) == ((), "")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (" -v /lib/modules:/lib/modules ", ("-v", "/lib/modules:/lib/modules")),
        (" --device=/dev/dri  --group-add video", ("--device=/dev/dri", "--group-add", "video")),
        ('--env "A=b c"', ("--env", "A=b c")),
        ("-it --device /dev/x --privileged -eA=;", ("-it", "--device", "/dev/x", "--privileged", "-eA=;")),
    ],
)
def test_container_options_are_split_as_a_shell_would(
    tree: Tree, text: str, options: tuple[str, ...]
) -> None:
    edit(tree, "test_conf.py", "", f"ACCE_CONTAINER_OPT = {text!r}\n")
    assert tree.load().cases[0].container_options == options


def test_paths_where_none_are_given(tree: Tree) -> None:
    edit(tree, "test_conf.py", '"/home/flagperf/training"', "None")
    run = tree.load().run
    assert run.flagperf_path_host == str(tree.training)
    assert run.flagperf_path_container == "/workspace/flagperf/training"
    assert (run.log_path, run.log_path_container) == (tree.training / "result", "/workspace/flagperf/result")


def test_home_is_known_on_this_machine_only(
    tree: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    edit(tree, "test_conf.py", "", "FLAGPERF_LOG_PATH = '~/logs'\n")
    assert tree.load().run.log_path == tmp_path / "logs"


def test_log_path_of_the_command_line_wins(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(tree, "test_conf.py", "", "FLAGPERF_LOG_PATH = '/dev/null/none'\n")
    monkeypatch.chdir(tmp_path)
    assert tree.load(log_path=Path("mine")).run.log_path == tmp_path / "mine"


def test_log_path_of_the_command_line_is_checked(tree: Tree) -> None:
    with pytest.raises(Exception, match="command line: --log-path = '/dev/null/x'"):
        tree.load(log_path=Path("/dev/null/x"))


def test_every_new_setting(tree: Tree, tmp_path: Path) -> None:
    edit(
        tree,
        "test_conf.py",
        "",
        'RUNTIME = "process"\nCONTAINER_ENGINE = "/usr/bin/podman"\nPROCESS_PYTHON = "/opt/py/bin/python3"\n'
        'IMAGE_DISTRIBUTION = "registry"\nIMAGE_REGISTRY = "r.local:5000/team/"\n'
        'IMAGE_BUILD_ARGS = {"BASE_IMAGE": "b:1"}\nCASE_DEADLINE_HOURS = 1.5\nMIN_FREE_DISK_GIB = 0\n'
        'MONITOR_INTERVAL = 0.5\nFLAGPERF_LOG_LEVEL = "WARNING"\n',
    )
    plan = tree.load()
    run = plan.run
    assert (run.runtime, run.container_engine, run.process_python) == (
        "process",
        "/usr/bin/podman",
        "/opt/py/bin/python3",
    )
    assert (run.image_distribution, run.image_registry) == ("registry", "r.local:5000/team")
    assert plan.cases[0].image_build_args == {"BASE_IMAGE": "b:1"}
    assert (run.case_deadline_hours, run.min_free_disk_gib, run.monitor_interval_s) == (1.5, 0.0, 0.5)
    assert run.log_level == "warning"


def test_deadline_of_a_case_wins(tree: Tree) -> None:
    tree.configure(test_conf=TEST_CONF_2022.replace('"repeat": 3', '"repeat": 3, "deadline_hours": 2'))
    edit(tree, "test_conf.py", "", "CASE_DEADLINE_HOURS = 9\n")
    assert tree.load().cases[0].deadline_s == 7200.0


def test_cases_run_in_the_order_of_the_file_and_the_choice_overrides_it(tree: Tree) -> None:
    edit(tree, "test_conf.py", "}\n", '    "toy:pytorch:X1:2:1:1": "/data/toy",\n}\n')
    both = ["toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:1"]
    assert [case.settings.name for case in tree.load().cases] == both
    assert [case.settings.name for case in tree.load(only=both[::-1]).cases] == both[::-1]
    assert [case.settings.name for case in tree.load(only=both[1:]).cases] == both[1:]


def test_chosen_case_of_2022_needs_a_dict_but_no_place_in_the_list(tree: Tree) -> None:
    tree.configure(test_conf=TEST_CONF_2022.replace("['TOY_DEMO_2X1']", "[]"))
    assert [case.settings.name for case in tree.load(only=["TOY_DEMO_2X1"]).cases] == ["TOY_DEMO_2X1"]
    with pytest.raises(NoValidCaseError):
        tree.load()


def test_names_of_the_users_own(tree: Tree) -> None:
    edit(tree, "test_conf.py", "VENDOR", "import os\nraid = '/raid'\n_KEY = 1\ndef f(): return 2\nVENDOR")
    assert tree.load().cases[0].vendor.name == "acme"


def test_settings_taken_from_another_file(tree: Tree) -> None:
    (tree.config / "site_defaults.py").write_text('SHM_SIZE = "8G"\nCLEAR_CACHES = True\n')
    edit(tree, "test_conf.py", 'SHM_SIZE = "32G"\n', "from site_defaults import *\n")
    run = tree.load().run
    assert (run.shm_size, run.clear_caches) == ("8G", True)


def test_loading_leaves_the_hosts_and_the_log_path_alone(tree: Tree) -> None:
    """`run.py plan` must touch nothing: not even the folder for the results."""
    run = tree.load().run
    assert not run.log_path.exists()


def test_numbers_are_not_shared_between_trees(tree: Tree, tmp_path: Path) -> None:
    """Two config folders in one process: neither sees the other's values."""
    other = Tree(tree.training, tmp_path / "other")
    other.configure(test_conf=TEST_CONF.replace("32G", "1G"), cluster_conf='HOSTS = ["node9"]\n')
    assert (tree.load().run.shm_size, other.load().run.shm_size, tree.load().run.shm_size) == (
        "32G",
        "1G",
        "32G",
    )


def test_an_edit_right_after_a_run_counts(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same second, same length: Python's own cache of compiled files would not see it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    sizes = [tree.load().run.shm_size]
    edit(tree, "test_conf.py", "32G", "64G")
    edit(tree, "acme/toy-pytorch/config/config_X1x1x2.py", "16", "24")
    plan = tree.load()
    assert [*sizes, plan.run.shm_size] == ["32G", "64G"]
    assert plan.cases[0].parameters["train_batch_size"] == 24
    assert not list(tree.config.parent.rglob("__pycache__"))
