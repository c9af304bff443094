"""Units on nodes of a real Slurm, which have one work folder: as processes, by Apptainer's FAKE, as steps of Pyxis."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.hosts.base import Host
from run_benchmarks.names import WORK_FOLDER, work_folder
from run_benchmarks.plan.tool_options import Wanted
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.runtimes.apptainer import ApptainerRuntime
from run_benchmarks.runtimes.base import Mount, Runtime, Unit
from run_benchmarks.runtimes.pyxis import PyxisRuntime
from run_benchmarks.stages.file_systems import shared_file_systems
from run_benchmarks.transports.base import CommandError
from run_benchmarks.transports.srun import SrunTransport
from run_benchmarks.transports.time_limit import within
from tests.fakes import apptainer
from tests.run_benchmarks.runtimes.conftest import TRAINING, settings
from tests.slurm.slurm import Slurm

RUN, TAG = "run20261120094218-d7e6a7", "flagperf/acme-pytorch:0123456789ab"
PYTHON = "/usr/bin/python3"


class WithoutContainer(PyxisRuntime):
    """Pyxis's command without its own options: what is left of it a Slurm without Pyxis takes too."""

    def boxed(self, unit: Unit, wanted: Wanted, folder: str) -> tuple[tuple[str, ...], Mapping[str, str]]:
        argv, variables = super().boxed(unit, wanted, folder)
        own = ("--container", "--no-container")
        return tuple(word for word in argv if not word.startswith(own)), variables


@pytest.fixture
def nodes(slurm: Slurm, tmp_path: Path) -> list[Host]:
    """The two nodes of a job, on which there is a work folder."""
    (tmp_path / WORK_FOLDER).mkdir(mode=0o700)
    job = slurm.allocate("--nodes=2", "--exclusive", "--no-requeue")
    return [Host(name, name, SrunTransport(str(job), name)) for name in ("n1", "n2")]


def unit(node: Host, script: str, **changes: Any) -> Unit:
    labels = {"flagperf.run": RUN, "flagperf.role": "task"}
    argv, tree = ("sh", "-c", script), str(TRAINING)
    return Unit(
        f"flagperf-{RUN}-{node.name}-task", labels, TAG, argv, tree=tree, host_network=True, **changes
    )


def all_of_a_unit(runtime: Runtime, nodes: list[Host], folder: Path) -> list[str]:
    """What units have printed that ran on all nodes to their ends."""
    return asyncio.run(within(_all_of_a_unit(runtime, nodes, folder), 240.0))


async def _all_of_a_unit(runtime: Runtime, nodes: list[Host], folder: Path) -> list[str]:
    """Start a unit on each node, see that each lists its own, let them end; what they printed."""
    script = f'echo "$TOKEN on $(hostname)"; until [ -e {folder}/go ]; do sleep 0.2; done; exit 3'
    mounts = (Mount(str(folder), str(folder)),)
    units = [unit(node, script, secrets={"TOKEN": "it's"}, mounts=mounts) for node in nodes]
    waiting = [(node.transport, each) for node, each in zip(nodes, units, strict=True)]
    await asyncio.gather(*(runtime.start(transport, each) for transport, each in waiting))
    for transport, each in waiting:
        (listed,) = await runtime.list_units(transport, RUN)
        assert (listed.name, listed.running) == (each.name, True)
    (folder / "go").touch()
    assert await asyncio.gather(*(runtime.wait(transport, each.name) for transport, each in waiting)) == [
        3,
        3,
    ]
    printed = [await runtime.last_output(transport, each.name) for transport, each in waiting]
    for transport, each in waiting:
        assert await runtime.remove_all(transport, RUN) == (each.name,)
        await transport.close()
    return printed


def test_nodes_of_a_job_that_share_a_folder_are_noticed(nodes: list[Host], tmp_path: Path) -> None:
    (tmp_path / "work").mkdir(mode=0o700)

    async def scenario() -> None:
        seen = await shared_file_systems(nodes, str(tmp_path / "work"), RUN)
        assert seen.groups(nodes) == [tuple(nodes)] and seen.seen_here == {"n1", "n2"}

    asyncio.run(scenario())
    assert list((tmp_path / "work").iterdir()) == []


def test_units_of_two_nodes_in_one_folder(nodes: list[Host], tmp_path: Path) -> None:
    runtime = open_runtime(settings(tmp_path, runtime="process", process_python=PYTHON))
    assert all_of_a_unit(runtime, nodes, tmp_path) == ["it's on n1", "it's on n2"]
    assert list(Path(work_folder(settings(tmp_path)), "units").iterdir()) == []


def test_units_by_apptainer_on_nodes(
    nodes: list[Host], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{apptainer.install(tmp_path / 'bin')}:{os.environ['PATH']}")
    runtime = open_runtime(settings(tmp_path, runtime="apptainer", process_python=PYTHON))
    assert isinstance(runtime, ApptainerRuntime)
    Path(runtime.image_path(TAG)).parent.mkdir(parents=True)
    Path(runtime.image_path(TAG)).touch()
    assert all_of_a_unit(runtime, nodes, tmp_path) == ["it's on n1", "it's on n2"]


def test_units_that_are_steps(nodes: list[Host], tmp_path: Path) -> None:
    runtime = WithoutContainer(settings(tmp_path, runtime="pyxis", process_python=PYTHON))
    printed = all_of_a_unit(runtime, nodes, tmp_path)
    assert [text.splitlines()[-2] for text in printed] == ["it's on n1", "it's on n2"], (
        "srun says the code last"
    )


def test_a_step_is_let_end_by_itself_and_then_is_ended(
    nodes: list[Host], slurm: Slurm, tmp_path: Path
) -> None:
    runtime = WithoutContainer(settings(tmp_path, runtime="pyxis", process_python=PYTHON))
    heeding, deaf = nodes
    last_words = f"trap 'sleep 1; echo bye >{tmp_path}/last_words; exit 0' TERM; touch {tmp_path}/$(hostname)"
    ignoring = f"trap '' TERM; touch {tmp_path}/$(hostname)"
    forever = "while :; do sleep 0.2; done"

    async def scenario() -> None:
        await runtime.start(heeding.transport, unit(heeding, f"{last_words}; {forever}"))
        await runtime.start(deaf.transport, unit(deaf, f"{ignoring}; {forever}"))
        while not all((tmp_path / node.name).exists() for node in nodes):
            await asyncio.sleep(0.1)
        await runtime.remove_all(heeding.transport, RUN, grace_s=30)
        await runtime.remove_all(deaf.transport, RUN, grace_s=1)
        for node in nodes:
            assert await runtime.list_units(node.transport, RUN) == ()
            await node.transport.close()
        while "sh" in slurm.run("squeue", "--steps", "--noheader", "--format=%j").split():
            await asyncio.sleep(0.1)

    asyncio.run(within(scenario(), 240.0))
    assert (tmp_path / "last_words").read_text() == "bye\n"


def test_a_slurm_without_pyxis_is_refused_by_the_preflight(nodes: list[Host], tmp_path: Path) -> None:
    runtime = open_runtime(settings(tmp_path, runtime="pyxis", process_python=PYTHON))
    with pytest.raises(CommandError) as caught:
        asyncio.run(runtime.version(nodes[0].transport))
    assert "with Pyxis" in caught.value.remedy
