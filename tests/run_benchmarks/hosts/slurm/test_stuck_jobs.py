"""A node of a real Slurm that never ends its job, for its epilog hangs: the others are granted all the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.hosts.base import NotGivenBackError
from run_benchmarks.hosts.slurm import jobs, queue, tenure
from run_benchmarks.hosts.slurm.allocator import SlurmHosts
from run_benchmarks.hosts.slurm.visit import visited
from run_benchmarks.left_behind import remove_run
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.transports.local import LocalTransport
from tests.ports import free_port
from tests.run_benchmarks.builders import make_case
from tests.run_benchmarks.whole_run import make_whole_run
from tests.slurm.fixtures import need_slurm, speak_to
from tests.slurm.slurm import Slurm

RUN = "run20260102030405-abcdef"
LIMIT_S = 240.0
ONE = replace(make_case(("h1",), name="toy:pytorch:X1:1:1:1"), hosts=())
ONE = replace(ONE, settings=replace(ONE.settings, nnodes=1))
# On n1 it hangs as long as there is the file.
EPILOG = '#!/bin/sh\nwhile [ "$SLURMD_NODENAME" = n1 ] && [ -e {file} ]; do sleep 0.1; done\n'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    need_slurm()
    folder = tmp_path_factory.mktemp("slurm")
    epilog = folder / "epilog"
    epilog.write_text(EPILOG.format(file=folder / "hangs"))
    epilog.chmod(0o755)
    cluster = Slurm(folder, settings=(f"Epilog={epilog}",))
    with cluster.running():
        yield cluster


@pytest.fixture
def hanging(cluster: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """The cluster, on whose first node no job ends; this process's commands speak to it."""
    speak_to(cluster, monkeypatch)
    monkeypatch.setattr(tenure, "LOOK_S", 0.5)
    monkeypatch.setattr(queue, "LONGEST_S", 0.5)
    monkeypatch.setattr(jobs, "GIVE_BACK_S", 2.0)
    hangs = cluster.folder / "hangs"
    hangs.touch()
    yield cluster
    hangs.unlink()
    cluster.reset()


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the user is warned of."""
    lines: list[str] = []
    monkeypatch.setattr(queue.LOGGER, "warning", lines.append)
    return lines


def in_time(work: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work, LIMIT_S)

    return asyncio.run(bounded())


def hosts_of() -> SlurmHosts:
    return SlurmHosts(SlurmSettings(), RUN, 1, lambda job, node: LocalTransport(node))


async def nodes_of_a_round(hosts: SlurmHosts) -> list[str]:
    async with hosts.acquire(ONE) as allocation:
        return [host.name for host in allocation.hosts]


def end_a_round(hosts: SlurmHosts) -> None:
    """Run the first round, whose node does not end its job."""
    with pytest.raises(NotGivenBackError, match=r"still there 2 s .*: job \d+ \(COMPLETING\) n1\n"):
        in_time(nodes_of_a_round(hosts))


def test_it_costs_no_later_round(
    hanging: Slurm, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = hosts_of()
    end_a_round(hosts)
    monkeypatch.setattr(
        jobs, "GIVE_BACK_S", LIMIT_S
    )  # nobody waits for so long: what is stuck is not waited for
    for _ in range(2):
        assert in_time(nodes_of_a_round(hosts)) == ["n2"]
    assert warnings == [], "it has been told at the end of its own round"
    monkeypatch.setattr(jobs, "GIVE_BACK_S", 2.0)
    with pytest.raises(NotGivenBackError, match=r"\(COMPLETING\) n1\n"):
        in_time(hosts.close())
    assert set(hanging.jobs().values()) == {"COMPLETING"}


def test_who_takes_the_run_up_gets_other_nodes(
    hanging: Slurm, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    end_a_round(hosts_of())

    async def anew() -> None:
        async with hosts_of().acquire(ONE) as allocation:
            monkeypatch.setattr(jobs, "GIVE_BACK_S", LIMIT_S)
            assert [host.name for host in allocation.hosts] == ["n2"]

    in_time(anew())
    assert len(warnings) == 1 and "(COMPLETING) n1" in warnings[0]


def test_who_cleans_up_is_told_and_goes_on(
    hanging: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_a_round(hosts_of())
    run = make_whole_run(tmp_path, free_port(), monkeypatch)
    run.tree.configure(cluster_conf="HOSTS = slurm()\n")
    plan = run.tree.load()
    removed = in_time(remove_run(plan.cluster, plan.run, RUN))
    assert isinstance(removed["Slurm"], NotGivenBackError)
    assert "not known, as its results are not here" in str(removed["nodes of the run"])


def test_a_visit_loses_nothing_by_it(hanging: Slurm, warnings: list[str]) -> None:
    async def visit() -> list[str]:
        open_node = lambda job, node: LocalTransport(node)  # noqa: E731
        async with visited(jobs.Slurm(), SlurmSettings(), RUN, ["n1"], open_node) as nodes:
            return list(nodes)

    assert in_time(visit()) == ["n1"]
    assert len(warnings) == 1 and "(COMPLETING) n1" in warnings[0]


def test_doctor_shows_what_it_has_seen_of_hosts_that_it_cannot_give_back(
    hanging: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_whole_run(tmp_path, free_port(), monkeypatch)
    run.tree.configure(cluster_conf=f"HOSTS = slurm()\nMASTER_PORT = {free_port()}\n")
    assert run.main("doctor", "--json") == 3
    shown = capsys.readouterr()
    assert json.loads(shown.out)["hosts"].keys() == {"n1"}
    assert "the hosts could not be given back: slurm: still there" in shown.err and "n1\n" in shown.err
