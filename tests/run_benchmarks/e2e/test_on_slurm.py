"""The main job on two nodes that Slurm grants: as processes and in containers, to its target, and nothing left."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.run_benchmarks.e2e.harness import ENDLESS, QUICK, Bench, ending
from tests.run_benchmarks.e2e.setup import demo_data
from tests.run_benchmarks.process_table import pids_with
from tests.slurm.fixtures import need_slurm, speak_to
from tests.slurm.slurm import Slurm
from utils.events import parse_line
from utils.search.events import CONTROLLER_LOG, SearchEvent

CASE = "bert:pytorch:cpu:2:1:1"
SEARCH = "search:pytorch:cpu:2:1:1"
TRIALS = 4  # it ends by these, and not by time


class OnNetwork(Slurm):
    """Nodes that reach each other by an address of this machine that is not its loopback."""

    def address_of(self, node: str) -> str:
        argv = ["ip", "-4", "-oneline", "address", "show", "up", "scope", "global"]
        listed = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout
        address = re.search(r"inet ([0-9.]+)", listed)
        assert address, "this machine has no network but its loopback"
        return address[1]


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    need_slurm()
    slurm = OnNetwork(tmp_path_factory.mktemp("slurm"), nodes=2)
    try:
        slurm.up()
        yield slurm
    finally:
        slurm.down()


@pytest.fixture
def run(
    two_nodes: Slurm, bench: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Bench:
    """A run on Slurm's nodes; files and engine are this machine's."""
    speak_to(two_nodes, monkeypatch)
    run = bench([])
    (run.config / "cluster_conf.py").write_text('HOSTS = slurm(time="30", gres="gpu:2")\n')
    return run


def on_nodes(run: Bench, data: Path, runtime: str, case: str = CASE) -> None:
    """Set the run up for a runtime."""
    run.test(
        CASES={case: str(data)},
        RUNTIME=runtime,
        PROCESS_PYTHON=sys.executable,
        FLAGPERF_PATH_HOST=str(run.folder / "work"),
        IMAGE_DISTRIBUTION="build",
    )


def nothing_is_left(slurm: Slurm, uid: str) -> None:
    """No job, process or container."""
    assert slurm.jobs() == {}
    assert pids_with(uid) == []
    argv = ["docker", "ps", "--all", "--quiet", f"--filter=label=flagperf.run={uid}"]
    assert subprocess.run(argv, stdout=subprocess.PIPE, text=True).stdout == ""


@pytest.mark.parametrize("runtime", ["process", "docker"])
def test_two_nodes_that_slurm_grants_train_to_the_target(
    runtime: str, two_nodes: Slurm, run: Bench, data: Path, request: pytest.FixtureRequest
) -> None:
    if runtime == "docker":
        request.getfixturevalue("image")
    run.vendor_config("cpux2x1", QUICK)
    on_nodes(run, data, runtime)

    ended = run.run()

    assert ended.code == 0, ended.output
    (result,) = ended.rounds()
    assert result["verdict"] == "CONVERGED" and result["hosts"] == ["n1", "n2"]
    assert result["allocation"]["nodes"] == ["n1", "n2"]
    nothing_is_left(two_nodes, ended.uid())
    assert not list((run.folder / "work" / ".flagperf").glob(f"*/*{ended.uid()}*"))


def test_the_workers_of_a_search_are_nodes_that_slurm_grants(two_nodes: Slurm, run: Bench) -> None:
    config = run.training / "cpu" / "search-pytorch" / "config" / "config_cpux2x1.py"
    patient = "search_seconds = 1200\nlost_after_seconds = 600"
    config.write_text(f"{config.read_text()}\n{patient}\nmax_trials = {TRIALS}\n")
    on_nodes(run, demo_data("search"), "process", SEARCH)

    ended = run.run()

    assert ended.code == 0, ended.output
    (result,) = ended.rounds()
    assert (result["verdict"], result["hosts"]) == ("MEASURED", ["n1", "n2"])
    assert result["figures"]["trials"]["value"] == TRIALS
    assert ended.folder is not None
    log = (ended.folder / SEARCH / "round1" / "n1_noderank0" / CONTROLLER_LOG).read_text()
    events = [event for event in map(parse_line, log.splitlines()) if event]
    done = [event.value for event in events if event.name == SearchEvent.TRIAL_END.value]
    assert {value["worker"] for value in done if value["state"] == "done"} == {0, 1}
    nothing_is_left(two_nodes, ended.uid())


def test_a_job_that_is_cancelled_takes_its_containers_with_it(
    two_nodes: Slurm, run: Bench, data: Path, image: str
) -> None:
    run.vendor_config("cpux2x1", ENDLESS)
    on_nodes(run, data, "docker")
    process = run.start()
    with ending(run, process):
        run.wait_for_log(process, "step ")
        two_nodes.run("scancel", *map(str, two_nodes.jobs()))
        ended = run.ended(process)
    assert ended.code == 1, ended.output
    (result,) = ended.rounds()
    assert result["failure"]["class"] == "allocation_cancelled"
    nothing_is_left(two_nodes, ended.uid())
    assert ended.folder is not None  # the logs are where this machine sees them, too
    assert (ended.folder / CASE / "round1" / "n1_noderank0" / "rank0.out.log").is_file()
