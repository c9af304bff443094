"""A search goes on without a host that is lost. A FAKE launcher says what controller and workers would say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import Bench, ending
from tests.run_benchmarks.test_search_runs import BASE, CASE, launcher

NAME = "search:pytorch:cpu:2:1:1"


@pytest.mark.lab
def test_a_worker_whose_host_dies_does_not_end_the_round(
    two_hosts: Lab, bench: Callable[..., Bench], data: Path
) -> None:
    run = bench(["h1", "h2"], **two_hosts.env)
    files = {
        "benchmarks/sought/pytorch/__init__.py": "",
        "benchmarks/sought/pytorch/case.py": CASE,
        "benchmarks/sought/pytorch/config/_base.py": BASE,
        "benchmarks/sought/pytorch/config/mutable_params.py": "mutable_params = []\n",
        "cpu/sought-pytorch/config/config_cpux2x1.py": "",
        "utils/roles.py": launcher(Path("/tmp/go-on"), nodes=2),
    }
    for name, text in files.items():
        (run.training / name).parent.mkdir(parents=True, exist_ok=True)
        (run.training / name).write_text(text)
    name = NAME.replace("search", "sought")
    run.cluster(HOSTS=["h1", "h2"], HOST_LOST_AFTER=5, SSH_CONNECT_TIMEOUT=3)
    run.test(CASES={name: str(data)})
    process = run.start()
    with ending(run, process):
        run.wait_for_log(process, "worker 1 of node 1: joined")
        two_hosts.kill(2)
        run.wait_for_log(process, "the search goes on without it")
        container = two_hosts.ssh(
            1, "docker", "ps", "--filter", "name=task", "--format", "{{.Names}}"
        ).stdout.split()
        two_hosts.ssh(1, "docker", "exec", container[0], "touch", "/tmp/go-on")
    ended = run.ended(process)
    (result,) = ended.rounds()
    assert (ended.code, result["verdict"]) == (0, "MEASURED"), ended.output
    assert result["figures"]["accuracy"]["value"] == 0.9
    (note,) = (each for each in result["notes"] if "the search went on without it" in each)
    assert note.startswith("h2: ")
