"""Names of runs, folders and units: readable, unique, and such as every tool takes them."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path, PurePosixPath

import pytest

from run_benchmarks.names import RunId, host_paths, new_run_id, nodes_of, unit_labels, unit_name
from tests.run_benchmarks.builders import make_case
from tests.run_benchmarks.plan.tree import make_tree

RUN = RunId("run20260102030405", "run20260102030405-abcdef")
# https://docs.docker.com: container names; podman takes the same
CONTAINER_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")


def test_a_run_is_named_by_its_start() -> None:
    run = new_run_id(datetime(2026, 1, 2, 3, 4, 5, 999_999))
    assert run.name == "run20260102030405"
    assert re.fullmatch(r"run20260102030405-[0-9a-f]{6}", run.uid)


def test_two_controllers_that_start_in_one_second_do_not_meet() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5)
    assert len({new_run_id(now).uid for _ in range(100)}) > 90


def test_a_node_knows_its_host_and_folder() -> None:
    first, second = nodes_of(make_case(("h1", "10.0.0.2")), 3)
    assert (first.host, first.rank) == ("h1", 0)
    assert second.folder == "toy:pytorch:X1:2:1:1/round3/10.0.0.2_noderank1"
    assert len({first, second}) == 2


def test_paths_of_a_run(tmp_path: Path) -> None:
    paths = host_paths(make_tree(tmp_path).load().run, RUN, "0123")
    work = "/home/flagperf/training/.flagperf"
    assert (paths.work, paths.tree) == (work, f"{work}/tree-0123")
    assert paths.run == f"{work}/runs/{RUN.uid}"
    # what a container sees as the log path holds one folder, named as on the controller
    assert paths.logs == f"{paths.run}/{RUN.name}"
    node = nodes_of(make_case(), 1)[1]
    assert paths.node(node) == f"{paths.logs}/{node.folder}"
    assert PurePosixPath(paths.node(node)).is_relative_to(paths.run)


@pytest.mark.parametrize("name", ["bert:pytorch_1.8:A100:1:8:1", "BERT_TORCH_DEMO_A100_1X8", "a case/with *"])
def test_a_unit_has_a_name_that_engines_take(name: str) -> None:
    nodes = nodes_of(make_case(name=name), 2)
    names = {unit_name(RUN, node, role) for node in nodes for role in ("task", "monitor")}
    assert len(names) == 4
    assert all(CONTAINER_NAME.fullmatch(unit) and RUN.uid in unit for unit in names)


def test_labels_find_a_unit_again() -> None:
    node = nodes_of(make_case(), 2)[1]
    assert unit_labels(RUN, node, "monitor") == {
        "flagperf.run": RUN.uid,
        "flagperf.case": "toy:pytorch:X1:2:1:1",
        "flagperf.round": "2",
        "flagperf.node_rank": "1",
        "flagperf.role": "monitor",
    }
