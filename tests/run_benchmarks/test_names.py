"""Names of runs, folders and units: readable, unique, and such as every tool takes them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from run_benchmarks.names import (
    RunId,
    host_paths,
    new_run_id,
    node_folder_name,
    nodes_of,
    plain_path,
    run_of,
    unit_labels,
    unit_name,
)
from run_benchmarks.plan.cases import case_name, parse_case_key
from run_benchmarks.plan.values import HostList
from tests.run_benchmarks.builders import make_case
from tests.run_benchmarks.plan.tree import make_tree
from utils import process_unit

RUN = RunId("run20260102030405", "run20260102030405-abcdef", "2026-01-02T03:04:05+00:00")
# https://docs.docker.com: container names; podman takes the same
CONTAINER_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+")


def test_a_run_is_named_by_its_start() -> None:
    run = new_run_id(datetime(2026, 1, 2, 3, 4, 5, 999_999, timezone(timedelta(hours=2))))
    assert run.name == "run20260102030405"
    assert run.started == "2026-01-02T03:04:05+02:00"
    assert re.fullmatch(r"run20260102030405-[0-9a-f]{6}", run.uid)


def test_two_controllers_that_start_in_one_second_do_not_meet() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5)
    assert len({new_run_id(now).uid for _ in range(100)}) > 90


def test_a_path_is_shown_without_what_leads_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "far" / "down").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "down")
    monkeypatch.chdir(tmp_path / "far")
    assert plain_path(Path("../result")) == tmp_path / "result"
    assert plain_path(tmp_path / "link" / "../result") == tmp_path / "far" / "result", (
        "as the system takes it"
    )
    assert plain_path(tmp_path / "link" / "result") == tmp_path / "link" / "result"


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


def test_labels_that_we_did_not_write_belong_to_no_run() -> None:
    assert run_of({"flagperf.run": RUN.uid}) == RUN.uid
    for label in ("", "*", RUN.name, f"{RUN.uid}\n", f"{RUN.uid}; reboot", f"../{RUN.uid}"):
        assert run_of({"flagperf.run": label}) == ""
    assert run_of({}) == ""


ODD = st.text(alphabet="./:-_ a1\n\0*~é", max_size=12)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(parts=st.lists(ODD | st.sampled_from(["toy", "acme/toy", "1", "2", ".."]), min_size=6, max_size=6))
@example(parts=["acme/toy", "pytorch", "X1", "1", "2", "1"])
def test_a_case_that_is_accepted_is_one_folder_and_a_part_of_a_name(parts: list[str]) -> None:
    key = ":".join(parts)
    if parse_case_key(key)[1]:
        return
    name = case_name(key)
    assert PurePosixPath("/runs", name).parent == PurePosixPath("/runs") and name not in ("", ".", "..")
    unit = unit_name(RUN, nodes_of(make_case(name=name), 1)[0], "task")
    assert CONTAINER_NAME.fullmatch(unit) and process_unit.NAME.fullmatch(unit)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(host=ODD | st.from_regex(r"[a-z0-9.:/%-]{1,12}"))
@example(host="fe80::1%../../x")
@example(host="10.0.0.1")
def test_a_host_that_is_accepted_is_one_folder(host: str) -> None:
    try:
        (read,) = TypeAdapter(HostList).validate_python([host])
    except ValueError:
        return
    folder = node_folder_name(read, 0)
    assert PurePosixPath("/round1", folder).parent == PurePosixPath("/round1")
