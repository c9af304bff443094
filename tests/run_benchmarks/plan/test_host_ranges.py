"""Ranges in the names of hosts, as they are written and as they are shown."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from run_benchmarks.plan.host_ranges import MOST_HOSTS, alike, expand, expand_all, fold
from tests.run_benchmarks.plan.tree import Tree


def test_a_range_stands_for_its_hosts_in_ascending_order() -> None:
    assert expand("node[008-011]") == ("node008", "node009", "node010", "node011")
    assert expand("10.1.2.[3-6]") == ("10.1.2.3", "10.1.2.4", "10.1.2.5", "10.1.2.6")
    assert expand("r[1-2]n[1,3]-ib") == ("r1n1-ib", "r1n3-ib", "r2n1-ib", "r2n3-ib")
    assert expand("n[0-8/4]") == ("n0", "n4", "n8")
    assert expand("fe80::1") == ("fe80::1",)
    assert expand_all(["z", "node[1-2]"]) == ("z", "node1", "node2")
    assert len(expand("r[1-10]n[0001-1000]")) == MOST_HOSTS
    assert expand("nid[000009-000010]") == ("nid000009", "nid000010")
    assert expand("x[123456789012345678]") == ("x123456789012345678",)


@pytest.mark.parametrize(
    "entry", ["n[", "n]", "n[]", "n[1-]", "n[a]", "n[2-1]", "n[1-010]", "n[1-3/0]", "[[1]]", "n[-1]"]
)
def test_what_is_no_range_says_why(entry: str) -> None:
    with pytest.raises(ValueError, match=r"bracket|range"):
        expand(entry)


def test_a_slip_of_the_pen_does_not_fill_the_memory() -> None:
    many = ",".join(["1"] * (MOST_HOSTS + 1))
    for entry in ("n[1-99999]", "n[1-9999][1-9999]", "n[0-999999999999999999]", f"n[{many}]", "n[0-99999/2]"):
        with pytest.raises(ValueError, match=f"more than {MOST_HOSTS}"):
            expand(entry)
    with pytest.raises(ValueError, match="no range"):
        expand("n[1-9999999999999999999]")
    with pytest.raises(ValueError, match="names of more than"):
        expand("n[1-9999]" + "[1]" * 100_000)


def test_hosts_are_shown_as_they_may_be_written() -> None:
    assert fold([f"node{number:03}" for number in range(1, 513)]) == "node[001-512]"
    assert fold(["login", "n9", "n10", "n12"]) == "login, n[9-10,12]"
    assert fold([f"nid{number:06}" for number in range(1, 4)]) == "nid[000001-000003]"
    assert fold(["h1", "h2"]) == "h1, h2"
    assert fold(["a", "b", "10.1.2.3"]) == "a, b, 10.1.2.3"
    assert fold([]) == ""


@given(st.lists(st.from_regex(r"[a-z]{1,2}[0-9]{0,20}(-ib)?", fullmatch=True), unique=True, max_size=30))
def test_what_is_shown_stands_for_the_same_hosts(hosts: list[str]) -> None:
    shown = fold(hosts)
    entries = shown.split(", ") if shown else []
    assert sorted(expand_all(entries)) == sorted(hosts)


def test_hosts_of_which_the_same_is_said_share_a_line() -> None:
    texts = {f"n{number}": f"no answer from n{number} port 22" for number in range(1, 900)}
    texts["n900"] = "n900.site refuses n900: it is no n9001"
    assert alike(texts) == [
        ("n[1-899]", "no answer from <host> port 22"),
        ("n900", "n900.site refuses n900: it is no n9001"),
    ]


def test_a_cluster_of_ranges(tree: Tree) -> None:
    tree.configure(cluster_conf='HOSTS = ["head", "node[001-512]"]\n')
    hosts = tree.load().cluster.hosts
    assert hosts[:2] == ("head", "node001") and hosts[-1] == "node512" and len(hosts) == 513
    tree.configure(cluster_conf='HOSTS = {"acme": ["a[1-3]", "z"]}\n')
    cluster = tree.load().cluster
    assert cluster.hosts == cluster.hosts_of("acme") == ("a1", "a2", "a3", "z")


def test_nothing_of_the_users_settings_of_clustershell_is_read() -> None:
    """Its NodeSet reads settings and groups when it is imported; its ranges are those that are used."""
    code = (
        "import sys; sys.path.insert(0, 'training'); from run_benchmarks.plan.host_ranges import expand, fold; "
        "fold(expand('n[1-9]')); print(*(name for name in sys.modules if name.startswith('ClusterShell')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"ClusterShell", "ClusterShell.RangeSet"}
