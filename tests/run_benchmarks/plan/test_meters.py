"""POWER_METERS: whom this machine asks for the power of a host, and what is refused before anything is launched."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.load import load_settings
from run_benchmarks.plan.meters import Meter
from run_benchmarks.plan.problems import ConfigError
from tests.run_benchmarks.plan.test_bad_input import edit
from tests.run_benchmarks.plan.tree import CLUSTER_CONF, Tree

VARIABLE, PASSWORD = "BMC_PASSWORD_OF_TESTS", "Qk3-a-BMC-secret"
ENTRY = '"address": "https://10.9.1.2", "user": "reader"'


def configure(tree: Tree, meters: str) -> None:
    tree.configure(cluster_conf=f"{CLUSTER_CONF}POWER_METERS = {meters}\n")


@pytest.fixture(autouse=True)
def variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, PASSWORD)


def test_a_range_of_hosts_has_a_range_of_meters(tree: Tree) -> None:
    configure(
        tree,
        f'{{"node[1-2]": {{"address": "https://10.9.1.[11-12]:8443", "user": "u", "pass_env": "{VARIABLE}"}}}}',
    )
    meters = tree.load().cluster.meters
    assert [(host, each.kind, each.host, each.port) for host, each in meters.items()] == [
        ("node1", "redfish", "10.9.1.11", 8443),
        ("node2", "redfish", "10.9.1.12", 8443),
    ]
    assert not any(each.shared_with for each in meters.values())
    assert meters["node1"].where == "redfish at 10.9.1.11:8443"


def test_one_meter_of_several_hosts_is_marked(tree: Tree) -> None:
    configure(tree, f'{{"node[1-2]": {{{ENTRY}}}}}')
    assert [each.shared_with for each in tree.load().cluster.meters.values()] == [("node2",), ("node1",)]
    configure(tree, f'{{"node[1-2]": {{{ENTRY}, "chassis": "Sled[1-2]"}}}}')
    assert [each.chassis for each in tree.load().cluster.meters.values()] == ["Sled1", "Sled2"]
    assert not any(each.shared_with for each in tree.load().cluster.meters.values())


def test_an_address_of_ipv6_is_no_range(tree: Tree) -> None:
    configure(tree, '{"node1": {"address": "ipmi://[2001:db8::7]:9623", "user": "u", "cipher_suite": 3}}')
    meter = tree.load().cluster.meters["node1"]
    assert (meter.kind, meter.host, meter.port, meter.cipher_suite) == ("ipmi", "2001:db8::7", 9623, 3)


def test_the_password_stands_in_nothing_that_is_written_or_shown(tree: Tree, tmp_path: Path) -> None:
    file = tmp_path / "bmc.pass"
    file.write_text(f"{PASSWORD}\n")
    file.chmod(0o600)
    for place in (f'"pass_env": "{VARIABLE}"', f'"pass_file": "{file}"'):
        configure(tree, f'{{"node1": {{{ENTRY}, {place}}}}}')
        plan = tree.load()
        assert plan.cluster.meters["node1"].password() == PASSWORD
        assert PASSWORD not in json.dumps(plan_as_dict(plan)) and PASSWORD not in repr(plan)
        assert plan.secrets.hide(f"it said {PASSWORD}") == "it said ***"


WRONG = [
    ('["node1"]', "", "it is no dict"),
    ('{"node1": "https://10.9.1.2"}', "['node1']", "is no meter of a host"),
    (f'{{"node3": {{{ENTRY}}}}}', "['node3']", "node3: HOSTS and SPARE_HOSTS have no such host"),
    (f'{{"node[1-": {{{ENTRY}}}}}', "['node[1-']", "bracket without its other half"),
    (f'{{"node1": {{{ENTRY}}}, "node[1-2]": {{{ENTRY}}}}}', "['node[1-2]']", "node1 stands in two entries"),
    ('{"node1": {"user": "u"}}', "['node1']['address']", "is not set"),
    ('{"node1": {"address": "http://10.9.1.2"}}', "['node1']['address']", "is no address of a meter"),
    ('{"node1": {"address": "10.9.1.2"}}', "['node1']['address']", "is no address of a meter"),
    ('{"node1": {"address": "https://-E"}}', "['node1']['address']", "is no address of a meter"),
    ('{"node1": {"address": "https://h:99999"}}', "['node1']['address']", "is no address of a meter"),
    ('{"node1": {"address": "https://h/redfish/v1"}}', "['node1']['address']", "more in it than a host"),
    ('{"node1": {"address": "https://me@h"}}', "['node1']['address']", "more in it than a host"),
    ('{"node[1-2]": {"address": "https://h[1-3]"}}', "['node[1-2]']['address']", "stands for 3, and"),
    ('{"node1": {"address": "ipmi://h"}}', "['node1']['user']", "is not set"),
    ('{"node1": {"address": "ipmi://h", "user": "u", "chassis": "1"}}', "['node1']['chassis']", "that ipmi has"),
    (f'{{"node1": {{{ENTRY}, "sensors": ["x"]}}}}', "['node1']['sensors']", "nothing that redfish has"),
    (f'{{"node1": {{{ENTRY}, "pasword_file": "x"}}}}', "['node1']['pasword_file']", "is no key of this dict"),
    (f'{{"node1": {{{ENTRY}, "ca_file": "/no/such"}}}}', "['node1']['ca_file']", "names no file"),
    (f'{{"node1": {{{ENTRY}, "pass_env": "{VARIABLE}", "pass_file": "x"}}}}', "['node1']['pass_file']", "beside"),
    ('{"node1": {"address": "https://h", "pass_file": "x"}}', "['node1']['user']", "is empty, and there is a password"),
    (f'{{"node1": {{{ENTRY}, "pass_env": "NO_SUCH_VARIABLE"}}}}', "", "the environment has no NO_SUCH_VARIABLE"),
    (f'{{"node1": {{{ENTRY}, "pass_file": "/no/such"}}}}', "", "/no/such cannot be read"),
    (f'{{"node1": {{{ENTRY}, "accept_self_signed": "yes"}}}}', "['node1']['accept_self_signed']", "wrong type"),
]  # fmt: skip


@pytest.mark.parametrize(("meters", "name", "message"), WRONG, ids=[each[2] for each in WRONG])
def test_what_is_wrong_is_refused(meters: str, name: str, message: str, tree: Tree) -> None:
    configure(tree, meters)
    _, (problem,) = tree.problems()
    assert (problem.name, message in problem.message) == (f"POWER_METERS{name}", True), problem
    assert problem.where.endswith("cluster_conf.py:3") and problem.remedy


def test_a_password_in_the_file_is_refused_and_not_shown(tree: Tree) -> None:
    configure(tree, f'{{"node1": {{{ENTRY}, "password": "hunter2-hunter2"}}}}')
    _, (problem,) = tree.problems()
    assert "does not stand in this file" in problem.message and "pass_env" in problem.remedy
    assert "hunter2" not in str(problem)


@pytest.mark.parametrize("key", ["pass", "pwd", "pass_env", "pass_file"])
@pytest.mark.parametrize("password", ["hunter2-hunter2", "hunter2"])
def test_a_password_in_the_place_of_another_field_is_not_shown(key: str, password: str, tree: Tree) -> None:
    configure(tree, f'{{"node1": {{{ENTRY}, "{key}": "{password}"}}}}')
    _, (problem,) = tree.problems()
    assert key in f"{problem.name} {problem.message} {problem.remedy}"
    assert "hunter2" not in str(problem)


def test_a_password_behind_the_user_of_ssh_is_not_shown(tree: Tree) -> None:
    for user, is_shown in (("root:hunter2", False), ("root/hunter2", True)):
        edit(tree, "cluster_conf.py", "", f"SSH_USER = {user!r}\n")
        _, (problem,) = tree.problems()
        assert (problem.name, "hunter2" in str(problem)) == ("SSH_USER", is_shown)


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_file_that_others_may_read_is_refused(mode: int, tree: Tree, tmp_path: Path) -> None:
    file = tmp_path / "bmc.pass"
    file.write_text(PASSWORD)
    file.chmod(mode)
    configure(tree, f'{{"node1": {{{ENTRY}, "pass_file": "{file}"}}}}')
    _, (problem,) = tree.problems()
    assert "may be read by others" in problem.message and "chmod 600" in problem.remedy
    assert PASSWORD not in str(problem)


def test_a_pipe_in_place_of_the_file_is_refused_and_not_waited_for(tree: Tree, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "bmc.pass", 0o600)
    configure(tree, f'{{"node1": {{{ENTRY}, "pass_file": "{tmp_path}/bmc.pass"}}}}')
    _, (problem,) = tree.problems()
    assert "is no file of yours" in problem.message


def test_who_reads_no_meter_needs_no_password(tree: Tree) -> None:
    """To stop or clean up a run the variable need not be set."""
    configure(tree, f'{{"node1": {{{ENTRY}, "pass_env": "NO_SUCH_VARIABLE"}}}}')
    cluster, _ = load_settings(tree.config, tree.training)
    assert cluster.meters["node1"].pass_env == "NO_SUCH_VARIABLE"
    with pytest.raises(ConfigError):
        tree.load()


def test_monitors_leave_out_a_kind_or_give_it_another_interval(tree: Tree) -> None:
    from run_benchmarks.plan.monitors import intervals_of, meter_interval

    assert meter_interval({}, "redfish") == 2.0
    assert meter_interval({"ipmi": 0.5}, "ipmi") == 0.5
    assert meter_interval({"ipmi": False}, "ipmi") is None
    assert not {"redfish", "ipmi"} & intervals_of({"ipmi": 0.5}, 1.0).keys(), "the nodes' monitors have none"


def test_a_password_does_not_stay_in_the_environment_of_what_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A case's script that prints its environment on this machine had it in its log."""
    monkeypatch.setenv(VARIABLE, PASSWORD)
    meter = Meter("redfish", "bmc", 443, user="u", pass_env=VARIABLE)
    assert meter.password() == PASSWORD and VARIABLE not in os.environ
    assert meter.password() == PASSWORD
