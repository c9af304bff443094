"""A case on two hosts that a real Slurm grants, in containers of their own engines; nothing is left, and no job."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.fixtures import LabFactory
from tests.lab.lab import Common
from tests.run_benchmarks.e2e.harness import QUICK, Bench, containers, run_folder
from tests.slurm.fixtures import need_slurm
from tests.slurm.lab_slurm import LabSlurm


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that the hosts can share: not in /tmp, which a host has of its own."""
    with tempfile.TemporaryDirectory(prefix="flagperf-slurm-", dir="/var/tmp") as folder:
        yield Path(folder)


def test_a_case_converges_on_the_nodes_of_a_job(
    lab: LabFactory, image: str, bench: Callable[..., Bench], data: Path, shared: Path
) -> None:
    need_slurm()
    hosts = lab(2, images=[image], common=[Common(shared, str(shared), [1, 2])])
    slurm = LabSlurm(shared, nodes=2, prefix="h", lab=hosts)
    try:
        slurm.up()
        run = bench([], **hosts.env, **slurm.variables)
        run.cluster(HOSTS={"slurm": {"gres": "gpu:2"}})
        run.vendor_config("cpux2x1", QUICK)
        run.test(CASES={"bert:pytorch:cpu:2:1:1": str(data)})
        ended = run.run()
        assert ended.code == 0, ended.output
        (result,) = ended.rounds()
        assert (result["verdict"], result["hosts"]) == ("CONVERGED", ["h1", "h2"])
        assert result["allocation"]["nodes"] == ["h1", "h2"]
        assert slurm.jobs() == {}
    finally:
        slurm.down()
    for host in (1, 2):
        assert containers(hosts, host) == ""
        assert run_folder(hosts, host, ended.uid()) == ""
