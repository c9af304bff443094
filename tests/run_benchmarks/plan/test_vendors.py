"""Cases of several vendors in one run: each has its vendor's hosts, options, image and chips."""

from __future__ import annotations

import pytest

from run_benchmarks.images.layers import plan_image
from run_benchmarks.plan_notes import notes_of
from run_benchmarks.results.planned import planned
from tests.run_benchmarks.plan.test_bad_input import edit
from tests.run_benchmarks.plan.tree import TEST_CONF, TEST_CONF_2022, VENDOR, Tree

OTHER = "bolt/toy:pytorch:Z9:1:2:1"


@pytest.fixture
def two(tree: Tree) -> Tree:
    """A tree with a second vendor, `bolt`, whose chip is another, and a case for each of the two."""
    tree.write("bolt/vendor.py", VENDOR.replace("acme", "bolt").replace("ACME", "BOLT").replace("X1", "Z9"))
    tree.write("bolt/docker_image/pytorch/Dockerfile", "FROM scratch\n")
    tree.write("bolt/toy-pytorch/config/config_Z9x1x2.py", "train_batch_size = 4\n")
    tree.configure(
        test_conf=TEST_CONF.replace("}\n", f'    "{OTHER}": "/data/toy",\n}}\n'),
        cluster_conf='HOSTS = {"acme": ["a1", "a2"], "bolt": ["b1"]}\n',
    )
    return tree


def test_each_case_has_its_vendors_hosts_options_and_chip(two: Tree) -> None:
    plan = two.load()
    acme, bolt = plan.cases
    assert (acme.vendor.name, acme.hosts, acme.chip and acme.chip.name) == ("acme", ("a1",), "X1")
    assert (bolt.vendor.name, bolt.hosts, bolt.chip and bolt.chip.name) == ("bolt", ("b1",), "Z9")
    assert (acme.container_options, bolt.container_options) == (
        ("--device=/dev/acme",),
        ("--device=/dev/bolt",),
    )
    assert (acme.visible_devices_env, bolt.visible_devices_env) == (
        "ACME_VISIBLE_DEVICES",
        "BOLT_VISIBLE_DEVICES",
    )
    assert bolt.files.config_dir == "bolt/toy-pytorch/config"
    assert plan_image(plan, bolt).tag.startswith("flagperf/bolt-pytorch:")
    assert plan.cluster.hosts == ("a1", "a2", "b1")


def test_the_result_folder_is_one_path_component(two: Tree) -> None:
    name = OTHER.replace("/", ":")
    assert [case.settings.name for case in two.load().cases] == ["toy:pytorch:X1:1:2:1", name]
    for choice in (OTHER, name):  # as it stands in the file, and as the results show it
        assert [case.settings.name for case in two.load(only=[choice]).cases] == [name]


def test_top_level_settings_are_the_default_vendors(two: Tree) -> None:
    edit(two, "test_conf.py", "", "ACCE_CONTAINER_OPT = '--a'\nIMAGE_BUILD_ARGS = {'BASE_IMAGE': 'a:1'}\n")
    acme, bolt = two.load().cases
    assert (acme.container_options, acme.image_build_args) == (("--a",), {"BASE_IMAGE": "a:1"})
    assert (bolt.container_options, bolt.image_build_args) == (("--device=/dev/bolt",), {})


def test_vendors_says_it_for_each(two: Tree) -> None:
    edit(
        two,
        "test_conf.py",
        "",
        "ACCE_CONTAINER_OPT = '--a'\nACCE_VISIBLE_DEVICE_ENV_NAME = 'A'\n"
        "VENDORS = {'bolt': {'ACCE_CONTAINER_OPT': '--b', 'ACCE_VISIBLE_DEVICE_ENV_NAME': '',\n"
        "           'IMAGE_BUILD_ARGS': {'BASE_IMAGE': 'b:1'}}, 'acme': {'ACCE_CONTAINER_OPT': '--c'}}\n",
    )
    acme, bolt = two.load().cases
    assert (acme.container_options, acme.visible_devices_env) == (("--c",), "A"), "VENDORS wins"
    assert (bolt.container_options, bolt.visible_devices_env) == (("--b",), "")
    assert bolt.image_build_args == {"BASE_IMAGE": "b:1"}


def test_a_case_of_2022_names_its_vendor(two: Tree) -> None:
    conf = TEST_CONF_2022.replace('"model": "toy"', '"vendor": "bolt", "model": "toy"', 1)
    conf = conf.replace("config_X1x2x1", "config_Z9x1x2").replace('"nnodes": 2', '"nnodes": 1')
    two.configure(test_conf=conf.replace('"nproc": 1', '"nproc": 2', 1))
    [case] = two.load().cases
    assert (case.vendor.name, case.hosts) == ("bolt", ("b1",))
    assert case.container_options == ("--device=/dev/bolt",), "the top-level ones are of VENDOR"


def test_one_host_may_have_chips_of_two_vendors(two: Tree) -> None:
    for hosts in ('HOSTS = ["n1"]\n', 'HOSTS = {"acme": ["n1"], "bolt": ["n1"]}\n'):
        two.configure(cluster_conf=hosts)
        plan = two.load()
        assert plan.cluster.hosts == ("n1",)
        assert [case.hosts for case in plan.cases] == [("n1",), ("n1",)]


def test_a_vendor_without_vendor_py_is_asked_for_by_name(two: Tree) -> None:
    (two.training / "bolt/vendor.py").unlink()
    two.write("benchmarks/toy/pytorch/run_pretraining.py", "")
    _, problems = two.problems()
    assert {problem.name for problem in problems} == {
        "VENDORS['bolt']['ACCE_CONTAINER_OPT']",
        "VENDORS['bolt']['ACCE_VISIBLE_DEVICE_ENV_NAME']",
    }
    assert all('VENDORS = {"bolt": {' in problem.remedy for problem in problems)


def test_what_is_wrong_at_the_top_is_reported_once(tree: Tree) -> None:
    edit(tree, "test_conf.py", "", "ACCE_CONTAINER_OPT = 5\nVENDORS = {'acme': {'IMAGE_BUILD_ARGS': {}}}\n")
    _, problems = tree.problems()
    assert [problem.name for problem in problems] == ["ACCE_CONTAINER_OPT"]


def test_options_have_reasons_and_those_of_numbered_devices_stand_for_each_rank(tree: Tree) -> None:
    reasons = '{"--device=/dev/acme{n}": "the chip", "--device /dev/acmectl": "its control"}'
    tree.write("acme/vendor.py", VENDOR.replace('["--device=/dev/acme"]', reasons))
    options = tree.load().cases[0].container_options
    assert options == ("--device=/dev/acme0", "--device=/dev/acme1", "--device", "/dev/acmectl")
    tree.write(
        "acme/vendor.py", VENDOR.replace('["--device=/dev/acme"]', reasons.replace("its control", " "))
    )
    (problem,) = tree.problems()[1]
    assert "gives no reason for --device /dev/acmectl" in problem.message


def test_what_is_said_of_a_chip_has_its_source_field_by_field(tree: Tree) -> None:
    said = (
        '"source": {"peak_flops": "a data sheet", "memory_bandwidth": "a measurement"}, '
        '"memory_bandwidth": 1.6e12, "link_bandwidth": {"chip": 392e9, "host": None}, "power_w": 400'
    )
    tree.write("acme/vendor.py", VENDOR.replace('"source": "a test"', said))
    case = tree.load().cases[0]
    chip = case.chip
    assert chip is not None and planned(case).chip.source_of_peaks() == "a data sheet"  # type: ignore[union-attr]
    assert (chip.memory_bandwidth, chip.link_bandwidth, chip.power_w) == (1.6e12, {"chip": 392e9}, 400)
    tree.write("acme/vendor.py", VENDOR.replace('"source": "a test"', said.replace("chip", "rack")))
    assert "rack" in str(tree.problems()[1][0])


def test_a_plugin_is_a_module_and_needs_no_note(tree: Tree) -> None:
    assert any("must come from a plug-in" in note for note in notes_of(tree.load()))
    tree.write("acme/vendor.py", VENDOR + 'PLUGIN = {"pytorch": "torch_acme"}\n')
    plan = tree.load()
    assert plan.cases[0].vendor.plugin == {"pytorch": "torch_acme"}
    assert not any("must come from a plug-in" in note for note in notes_of(plan))
    tree.write("acme/vendor.py", VENDOR + 'PLUGIN = {"pytorch": "torch-acme"}\n')
    assert "is no Python module" in str(tree.problems()[1][0].message)
