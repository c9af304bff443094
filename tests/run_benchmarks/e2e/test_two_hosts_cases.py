"""The other standard cases on two real hosts, at their demos' size and for some steps only."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import ALONE, Bench, containers
from tests.run_benchmarks.e2e.setup import DATA_ROOT, TRAINING, one_at_a_time

# A few steps and a target that an untrained model nearly meets.
QUICK: dict[str, dict[str, Any]] = {
    "glm": {**ALONE, "target": 0.05, "max_steps": 60, "eval_interval_samples": 320, "init_evaluation": False},
    "cpm": {**ALONE, "target": 0.2, "max_steps": 60, "eval_interval_samples": 640},
}


def demo_data(model: str) -> Path:
    """The demo's data, by the real preparation; kept between test sessions while what makes them is the same."""
    folders = (TRAINING / "benchmarks" / model, TRAINING / "benchmarks" / "common")
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".xz"))
    makers = (path for path in files if "pytorch" not in path.parts)  # what trains on them does not make them
    made_by = hashlib.sha256(b"".join(path.read_bytes() for path in makers)).hexdigest()
    out = DATA_ROOT / f"{model}_demo_{made_by[:12]}"
    with one_at_a_time(out.name):
        if (out / "manifest.json").is_file():
            return out
        command = (sys.executable, "-m", f"benchmarks.{model}.prepare", "--demo", "--out", str(out))
        subprocess.run(command, cwd=TRAINING, check=True, capture_output=True, text=True)
    return out


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
