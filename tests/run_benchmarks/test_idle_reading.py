"""Monitors sample a host before the ranks start: how long, in which order, and what of it stands in the result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.plan.idle_reading import IDLE_READING_S, idle_reading_s
from run_benchmarks.plan_view import plan_lines
from run_benchmarks.results.telemetry_file import read_telemetry
from tests.ports import reserved_port
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree, make_tree
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run
from utils.events import read_events

CASE = "toy:pytorch:X1:1:1:1"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    with reserved_port() as port:
        yield make_whole_run(tmp_path, port, monkeypatch)


def test_the_host_is_sampled_before_the_ranks_start(
    run: WholeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    run.configure("IDLE_READING = 1.5\nMONITORS = {'mem': 0.1}\n")
    assert run.main() == 0, capsys.readouterr().err
    times = json.loads((run.result / CASE / "round1" / "round.json").read_text())["times"]
    assert list(times)[2:5] == ["image", "idle", "launch"] and times["idle"] >= 1.5
    node = run.result / CASE / "round1" / "localhost_noderank0"
    first = read_telemetry(node / "telemetry.jsonl").samples[0].time_ms
    begin = next(iter(read_events(node / "rank0.out.log"))).time_ms
    assert first < begin, "and on a machine that is not busy by more than a second"


def test_the_default_is_a_reading_where_chips_are_sampled(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    tree.configure(test_conf=TEST_CONF)
    plan = tree.load()
    vendor = plan.cases[0].vendor
    assert idle_reading_s(plan.run, vendor) == 0
    tree.write("acme/acme_monitor.py", "def open_devices(): ...\n")
    assert idle_reading_s(plan.run, vendor) == IDLE_READING_S
    assert idle_reading_s(replace(plan.run, monitors={"accelerators": False}), vendor) == 0
    assert idle_reading_s(replace(plan.run, idle_reading_s=0.0), vendor) == 0


def stages(tree: Tree, settings: str) -> list[tuple[str, list[str]]]:
    """Of the plan of one node, each stage that starts units, with their roles."""
    tree.configure(test_conf=TEST_CONF.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:1") + settings)
    lines = list(plan_lines(tree.load()))
    stage, starts = "", []
    for line in lines[next(n for n, line in enumerate(lines) if "node rank 0" in line) :]:
        if line.startswith("# ----- host") and "node rank 1" in line:
            break
        stage = line[2:].partition(":")[0] if line.startswith("# ") else stage
        starts += [
            (stage, role) for role in ("task", "monitor") if " --detach " in line and f"role={role}" in line
        ]
    return starts


def test_the_plan_shows_which_unit_starts_when(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    assert sorted(stages(tree, "")) == [("launch", "monitor"), ("launch", "task")]
    assert stages(tree, "IDLE_READING = 600\n") == [("idle", "monitor"), ("launch", "task")], (
        "without waiting"
    )
