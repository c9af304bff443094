"""The demo as users run it, by the controller in plain processes: two workers search, and all is measured."""

from __future__ import annotations

import sys
from pathlib import Path

import benchmarks
from tests.benchmarks.driver.controller import run_by_the_controller
from tests.benchmarks.search.trials import digits
from tests.run_benchmarks.plan.tree import copy_code
from utils.events import read_events
from utils.search.events import CONTROLLER_LOG, SearchEvent

TRAINING = Path(benchmarks.__file__).parents[1]
CASE = "search:pytorch:cpu:1:2:1"


def for_so_many_trials(training: Path, trials: int, more: str = "") -> Path:
    """A copy of what a round of it needs, which ends by trials and not by time."""
    for name in ("utils", "benchmarks/driver", "benchmarks/common", "benchmarks/search", "cpu"):
        copy_code(TRAINING / name, training / name)
    (training / "benchmarks/__init__.py").touch()
    config = training / "cpu/search-pytorch/config/config_cpux1x2.py"
    patient = "search_seconds = 3000\nlost_after_seconds = 600"  # the machine may do other things too
    config.write_text(f"{config.read_text()}\n{patient}\nmax_trials = {trials}\n{more}\n")
    return training


def test_users_can_run_it(tmp_path: Path) -> None:
    training = for_so_many_trials(tmp_path / "training", 9)
    code, result, rank_0 = run_by_the_controller(sys.executable, CASE, digits(tmp_path), tmp_path, training)
    assert (code, result["verdict"], result["kind"]) == (0, "MEASURED", "measure")
    assert result["rules"]["stamp"] == "open"
    (log,) = (tmp_path / "result").rglob(CONTROLLER_LOG)
    events = read_events(log)
    ends = [event.value for event in events if event.name == SearchEvent.TRIAL_END.value]
    assert {end["worker"] for end in ends} == {0, 1}
    assert [end for end in ends if end["state"] not in ("done", "cut_off")] == []
    starts = [event.value for event in events if event.name == SearchEvent.TRIAL_START.value]
    assert {start["epochs"] for start in starts} == {1, 2, 3, 4}, "all rounds"
    assert any(start["tuned"] for start in starts) and any(start["parent"] for start in starts)
    epochs = [event.value for event in events if event.name == SearchEvent.EPOCH.value]
    assert {(each["training_samples"], each["validation_samples"]) for each in epochs} == {(1437, 360)}
    assert max(each["accuracy"] for each in epochs) > 0.6
    assert result["figures"]["score"]["value"] > 0
    assert [event.name for event in rank_0][:2] == ["INIT_START", "INIT_END"]


def test_two_ranks_are_one_worker_where_the_case_says_so(tmp_path: Path) -> None:
    """As on a host with several chips: every rank trains each trial, and one of them speaks with the controller."""
    training = for_so_many_trials(tmp_path / "training", 2, "ranks_per_worker = 0")
    code, result, _ = run_by_the_controller(sys.executable, CASE, digits(tmp_path), tmp_path, training)
    assert (code, result["verdict"]) == (0, "MEASURED")
    (log,) = (tmp_path / "result").rglob(CONTROLLER_LOG)
    values = {event.name: event.value for event in read_events(log)}
    assert values[SearchEvent.WORKER.value]["ranks"] == 2
    assert values[SearchEvent.EPOCH.value]["training_samples"] == 1437
    other = next((tmp_path / "result").rglob("rank1.out.log"))
    [hooks] = [event for event in read_events(other) if event.name == "HOOKS"]
    assert hooks.rank == 1, "it has had a network too"
