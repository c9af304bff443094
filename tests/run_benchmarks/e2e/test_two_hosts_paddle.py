"""BERT on Paddle on two real hosts: gloo between them through Paddle's store, and a failure that names its rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.lab.fixtures import LabFactory
from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import ENDLESS, QUICK, Bench, containers, ending, run_folder
from tests.run_benchmarks.e2e.setup import BASE_IMAGE, machine_plan, make_image

CASE = "bert:paddle:cpu:2:1:1"
MakeBench = Callable[..., Bench]


@pytest.fixture(scope="module")
def paddle_image(data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The cpu vendor's image for Paddle, on this machine's engine."""
    folder = tmp_path_factory.mktemp("paddle_image")
    return make_image(machine_plan(folder / "config", data, case="bert:paddle:cpu:1:2:1"), folder)


@pytest.fixture
def paddle_hosts(lab: LabFactory, paddle_image: str) -> Lab:
    """Two hosts that have the image, and the one that it is built on."""
    return lab(hosts=2, images=[paddle_image, BASE_IMAGE])


def _bench(bench: MakeBench, hosts: Lab, data: Path, settings: Mapping[str, Any]) -> Bench:
    run = bench(["h1", "h2"], **hosts.env)
    path = run.training / "cpu" / "bert-paddle" / "config" / "config_cpux2x1.py"
    lines = [f"{name} = {value!r}\n" for name, value in settings.items()]
    path.write_text("from config_common import *\ntrain_batch_size = 32\n" + "".join(lines))
    run.test(CASES={CASE: str(data)})
    return run


def test_two_hosts_train_to_the_target(paddle_hosts: Lab, bench: MakeBench, data: Path) -> None:
    ended = _bench(bench, paddle_hosts, data, QUICK).run()

    assert ended.code == 0, ended.output
    (result,) = ended.rounds()
    assert (result["verdict"], result["hosts"], result["failure"]) == ("CONVERGED", ["h1", "h2"], None)
    figures = {name: figure["value"] for name, figure in result["figures"].items()}
    assert figures["p_whole"] <= figures["p_train"] <= figures["p_core"]
    assert figures["acc"] >= QUICK["target"]
    assert result["facts"]["world_size"] == 2
    assert result["facts"]["num_trained_samples"] == result["facts"]["global_steps"] * 64
    assert ended.folder is not None
    logs = sorted(ended.folder.rglob("rank*.out.log"))
    assert [log.read_text().count('"event": "FINISHED"') for log in logs] == [1, 0]
    for host in (1, 2):
        assert containers(paddle_hosts, host) == ""
        assert run_folder(paddle_hosts, host, ended.uid()) == ""


def test_a_killed_rank_is_named(paddle_hosts: Lab, bench: MakeBench, data: Path) -> None:
    run = _bench(bench, paddle_hosts, data, ENDLESS)
    process = run.start()
    with ending(run, process):
        run.wait_for_log(process, "samples/s")
        (pid,) = paddle_hosts.ssh(2, "pgrep", "-f", "^python3 -u .*run_pretraining.py").stdout.split()
        paddle_hosts.ssh(2, "kill", "-9", pid)
    ended = run.ended(process)

    assert ended.code == 1, ended.output
    (result,) = ended.rounds()
    failure = result["failure"]
    assert (result["verdict"], failure["host"], failure["class"]) == ("FAILED", "h2", "rank_killed"), failure
    assert "rank 1" in failure["message"]
