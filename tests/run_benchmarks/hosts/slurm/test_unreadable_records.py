"""A real Slurm whose nodes are called nid000001 and so on, and one whose records nobody can read."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.hosts.base import AllocationError
from run_benchmarks.hosts.slurm import queue, tenure
from run_benchmarks.hosts.slurm.allocator import SlurmHosts
from run_benchmarks.hosts.slurm.jobs import Slurm as Commands
from run_benchmarks.hosts.slurm.record import UnreadableError
from run_benchmarks.plan.slurm import SlurmSettings, own_nodes
from run_benchmarks.transports.local import LocalTransport
from tests.ports import free_port
from tests.run_benchmarks.builders import make_case
from tests.run_benchmarks.whole_run import make_whole_run
from tests.slurm.fixtures import need_slurm, speak_to
from tests.slurm.slurm import Slurm
from utils.records import FailureClass

RUN = "run20260102030405-abcdef"
PATIENCE_S = 120.0
TWO = replace(make_case(), hosts=())
NAMES = ["nid000001", "nid000002"]
# Before the real one: while there is a file that says so, of a job it prints what FlagPerf does not understand.
SCONTROL = """\
#!/bin/sh
case "$1 $2" in "show job") ;; *) exec {real} "$@";; esac
[ -e {folder}/spoilt ] || exec {real} "$@"
echo asked >>{folder}/asked
{real} "$@" | sed 's/ NodeList=[^ ]*/ NodeList=nid[1-/'
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    need_slurm()
    cluster = Slurm(tmp_path_factory.mktemp("slurm"), prefix="nid00000")
    with cluster.running():
        yield cluster


@pytest.fixture
def slurm(cluster: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """The cluster without jobs; this process's commands speak to it, and often."""
    speak_to(cluster, monkeypatch)
    monkeypatch.setattr(tenure, "LOOK_S", 0.2)
    monkeypatch.setattr(queue, "LONGEST_S", 0.2)
    yield cluster
    cluster.reset()


@dataclass
class Scontrol:
    """FAKE: a `scontrol` before the real one, whose records of jobs can be spoilt."""

    folder: Path

    def spoil(self) -> None:
        (self.folder / "spoilt").touch()

    def mend(self) -> None:
        (self.folder / "spoilt").unlink()

    def asked(self) -> int:
        """How often it has printed what cannot be read."""
        file = self.folder / "asked"
        return len(file.read_text().splitlines()) if file.exists() else 0


@pytest.fixture
def scontrol(slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scontrol:
    program = tmp_path / "bin" / "scontrol"
    program.parent.mkdir()
    program.write_text(SCONTROL.format(real=shutil.which("scontrol"), folder=tmp_path))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return Scontrol(tmp_path)


def in_time(work: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work, PATIENCE_S)

    return asyncio.run(bounded())


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.05)


def hosts_of(**settings: Any) -> SlurmHosts:
    return SlurmHosts(SlurmSettings(**settings), RUN, 2, lambda job, node: LocalTransport(node))


async def nodes_of_a_round(hosts: SlurmHosts) -> list[str]:
    async with hosts.acquire(TWO) as allocation:
        return [host.name for host in allocation.hosts]


def test_nodes_may_be_numbered_with_six_digits(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_time(nodes_of_a_round(hosts_of())) == NAMES
    show = "import os; print(os.environ['SLURM_JOB_ID'], os.environ['SLURM_JOB_NODELIST'])"
    words = ("salloc", "--nodes=2", sys.executable, "-c", show)
    job, listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert listed == "nid[000001-000002]"
    monkeypatch.setenv("SLURM_JOB_ID", job)
    monkeypatch.setenv("SLURM_JOB_NODELIST", listed)
    assert own_nodes() == tuple(NAMES)


def test_a_job_whose_record_cannot_be_read_is_given_back(slurm: Slurm, scontrol: Scontrol) -> None:
    scontrol.spoil()
    with pytest.raises(
        AllocationError, match=r"cannot be read: the NodeList of job \d+, 'nid\[1-'"
    ) as refused:
        in_time(nodes_of_a_round(hosts_of()))
    assert refused.value.failure_class is FailureClass.HOSTS_NOT_ACQUIRED
    assert "scontrol show job" in refused.value.remedy
    assert slurm.jobs() == {}


def test_one_record_that_cannot_be_read_is_none(slurm: Slurm, scontrol: Scontrol) -> None:
    async def scenario() -> None:
        job = await asyncio.to_thread(slurm.allocate, "--nodes=2")
        scontrol.spoil()
        looking = asyncio.create_task(queue.looked_at(Commands(), str(job)))
        await until(lambda: scontrol.asked() == 1)
        scontrol.mend()
        seen = await looking
        assert seen is not None and list(seen.nodes) == NAMES

    in_time(scenario())


def test_a_round_that_trains_loses_nothing_by_it(slurm: Slurm, scontrol: Scontrol) -> None:
    async def scenario() -> None:
        async with hosts_of().acquire(TWO) as allocation:
            assert allocation.tenure is not None
            ending = asyncio.create_task(allocation.tenure.end())
            scontrol.spoil()
            await until(lambda: ending.done() or scontrol.asked() > 3)
            record = await allocation.tenure.record()
            assert list(record.nodes) == NAMES and not ending.done()
            scontrol.mend()
            slurm.run("scancel", record.job)
            assert (await ending).failure_class is FailureClass.ALLOCATION_CANCELLED

    in_time(scenario())


def test_a_job_that_is_kept_is_given_back_once_it_cannot_be_read(slurm: Slurm, scontrol: Scontrol) -> None:
    async def scenario() -> None:
        hosts = hosts_of(hold=True)
        assert await nodes_of_a_round(hosts) == NAMES
        scontrol.spoil()
        with pytest.raises(UnreadableError):
            await nodes_of_a_round(hosts)
        assert slurm.jobs() == {}
        scontrol.mend()
        assert await nodes_of_a_round(hosts) == NAMES
        await hosts.close()

    in_time(scenario())


def test_the_doctor_says_that_it_cannot_read_it(
    slurm: Slurm,
    scontrol: Scontrol,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scontrol.spoil()
    (tmp_path / "run").mkdir()
    run = make_whole_run(tmp_path / "run", free_port(), monkeypatch)
    run.tree.configure(cluster_conf=f"HOSTS = slurm()\nMASTER_PORT = {free_port()}\n")
    assert run.main("doctor") == 2
    assert "cannot be read: the NodeList of job" in capsys.readouterr().err
    assert slurm.jobs() == {}
