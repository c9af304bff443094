"""The other standard cases on two real hosts, at their demos' size and for some steps only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import ALONE, Bench, containers
from tests.run_benchmarks.e2e.setup import demo_data

# A few steps and a target that an untrained model nearly meets.
QUICK: dict[str, dict[str, Any]] = {
    "glm": {**ALONE, "target": 0.05, "max_steps": 60, "eval_interval_samples": 320, "init_evaluation": False},
    "cpm": {**ALONE, "target": 0.2, "max_steps": 60, "eval_interval_samples": 640},
}


@pytest.mark.parametrize("model", QUICK)
def test_two_hosts_train_to_the_target(two_hosts: Lab, bench: Callable[..., Bench], model: str) -> None:
    run = bench(["h1", "h2"], **two_hosts.env)
    case = f"{model}:pytorch:cpu:2:1:1"
    _configure(run, model, QUICK[model])
    run.test(CASES={case: str(demo_data(model))})

    ended = run.run()

    assert ended.code == 0, ended.output
    (result,) = ended.rounds()
    assert (result["verdict"], result["hosts"], result["failure"]) == ("CONVERGED", ["h1", "h2"], None)
    figures = {name: figure["value"] for name, figure in result["figures"].items()}
    assert figures["p_whole"] <= figures["p_train"] <= figures["p_core"]
    assert figures["acc"] >= QUICK[model]["target"]
    assert result["facts"]["world_size"] == 2
    assert ended.folder is not None
    logs = sorted(ended.folder.rglob("rank*.out.log"))
    assert [log.read_text().count('"event": "FINISHED"') for log in logs] == [1, 0]
    assert [containers(two_hosts, host) for host in (1, 2)] == ["", ""]


def _configure(run: Bench, model: str, settings: Mapping[str, Any]) -> None:
    """As the demo's own configuration for two hosts, but for `settings`."""
    path = run.training / "cpu" / f"{model}-pytorch" / "config" / "config_cpux2x1.py"
    lines = [f"{name} = {value!r}\n" for name, value in settings.items()]
    path.write_text(path.read_text() + "".join(lines))
