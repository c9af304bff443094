"""Cases on two hosts that a real Slurm grants, in containers of their own engines; nothing is left, and no job."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.fixtures import LabFactory
from tests.lab.lab import Common
from tests.run_benchmarks.e2e.harness import ENDLESS, QUICK, Bench, Ended, containers, ending, run_folder
from tests.slurm.fixtures import need_slurm
from tests.slurm.lab_slurm import LabSlurm

CASE = "bert:pytorch:cpu:2:1:1"


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that the hosts can share: not in /tmp, which a host has of its own."""
    with tempfile.TemporaryDirectory(prefix="flagperf-slurm-", dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def slurm(lab: LabFactory, image: str, shared: Path) -> Iterator[LabSlurm]:
    """Slurm on two hosts, each with an engine and a disk of its own."""
    need_slurm()
    hosts = lab(2, images=[image], common=[Common(shared, str(shared), [1, 2])])
    slurm = LabSlurm(shared, nodes=2, prefix="h", lab=hosts)
    try:
        slurm.up()
        yield slurm
    finally:
        slurm.down()


@pytest.fixture
def run(slurm: LabSlurm, bench: Callable[..., Bench], data: Path) -> Bench:
    run = bench([], **slurm.lab.env, **slurm.variables)
    run.cluster(HOSTS={"slurm": {"gres": "gpu:2"}})
    run.test(CASES={CASE: str(data)})
    return run


def nothing_is_left(slurm: LabSlurm, ended: Ended) -> None:
    assert slurm.jobs() == {}
    for host in (1, 2):
        assert containers(slurm.lab, host) == ""
        assert run_folder(slurm.lab, host, ended.uid()) == ""


def test_a_case_converges_on_the_nodes_of_a_job(slurm: LabSlurm, run: Bench) -> None:
    run.vendor_config("cpux2x1", QUICK)
    ended = run.run()
    assert ended.code == 0, ended.output
    (result,) = ended.rounds()
    assert (result["verdict"], result["hosts"]) == ("CONVERGED", ["h1", "h2"])
    assert result["allocation"]["nodes"] == ["h1", "h2"]
    nothing_is_left(slurm, ended)


def test_logs_come_home_from_the_disks_of_nodes_whose_job_is_cancelled(slurm: LabSlurm, run: Bench) -> None:
    run.vendor_config("cpux2x1", ENDLESS)
    process = run.start()
    with ending(run, process):
        run.wait_for_log(process, "step ")
        slurm.run("scancel", *map(str, slurm.jobs()))
        ended = run.ended(process)
    assert ended.code == 1, ended.output
    (result,) = ended.rounds()
    assert result["failure"]["class"] == "allocation_cancelled"
    assert ended.folder is not None
    for rank in (0, 1):
        assert (
            ended.folder / CASE / "round1" / f"h{rank + 1}_noderank{rank}" / f"rank{rank}.out.log"
        ).is_file()
    nothing_is_left(slurm, ended)
