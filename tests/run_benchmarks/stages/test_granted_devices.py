"""Which devices ranks use in a job of a real Slurm, and what is said where it has granted too few."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.slurm import SlurmSettings
from run_benchmarks.stages.granted_devices import granted_devices
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.transports.srun import SrunTransport
from tests.run_benchmarks.plan.tree import make_tree
from tests.slurm.slurm import Slurm
from utils.errors import FlagPerfError


def plan_for(folder: Path, runtime: str, visible: str = "CUDA_VISIBLE_DEVICES") -> Plan:
    """A case of two ranks on one node of Slurm's."""
    plan = make_tree(folder).load()
    case = replace(plan.cases[0], visible_devices_env=visible)
    cluster = replace(plan.cluster, slurm=SlurmSettings())
    return replace(plan, cluster=cluster, cases=(case,), run=replace(plan.run, runtime=runtime))


def granted(plan: Plan, transport: Transport) -> Sequence[str]:
    return asyncio.run(granted_devices(plan, plan.cases[0], transport))


@pytest.mark.parametrize("runtime", ["docker", "process"])
def test_ranks_use_what_the_step_has(runtime: str, slurm: Slurm, tmp_path: Path) -> None:
    job = slurm.allocate("--gres=gpu:2", "--nodelist=n1")
    assert granted(plan_for(tmp_path, runtime), SrunTransport(str(job), "n1")) == ("0", "1")


@pytest.mark.parametrize("runtime", ["docker", "process"])
def test_too_few_are_refused(runtime: str, slurm: Slurm, tmp_path: Path) -> None:
    """The second of two jobs on a node has one device, and not the first."""
    slurm.allocate("--gres=gpu:1", "--nodelist=n1")
    job = slurm.allocate("--gres=gpu:1", "--nodelist=n1")
    with pytest.raises(FlagPerfError, match="wants 2 devices; Slurm has granted 1 here: 1") as caught:
        granted(plan_for(tmp_path, runtime), SrunTransport(str(job), "n1"))
    assert 'gres="gpu:2"' in caught.value.remedy


def test_where_none_are_granted_nothing_is_said(slurm: Slurm, tmp_path: Path) -> None:
    job = slurm.allocate("--nodelist=n1")
    assert granted(plan_for(tmp_path, "process"), SrunTransport(str(job), "n1")) == ()


def in_step(monkeypatch: pytest.MonkeyPatch, **variables: str) -> LocalTransport:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return LocalTransport()


def test_a_confined_step_counts_within_itself_and_a_container_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = in_step(monkeypatch, CUDA_VISIBLE_DEVICES="0,1", SLURM_STEP_GPUS="2,3")
    assert granted(plan_for(tmp_path / "a", "process"), step) == ("0", "1")
    assert granted(plan_for(tmp_path / "b", "docker"), step) == ("2", "3")


def test_hip_counts_within_what_rocr_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = in_step(monkeypatch, ROCR_VISIBLE_DEVICES="4,6", SLURM_STEP_GPUS="4,6")
    assert granted(plan_for(tmp_path / "a", "process", "HIP_VISIBLE_DEVICES"), step) == ("0", "1")
    assert granted(plan_for(tmp_path / "b", "docker", "HIP_VISIBLE_DEVICES"), step) == ("4", "6")


def test_what_names_no_devices_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = in_step(monkeypatch, CUDA_VISIBLE_DEVICES="0,$(id)")
    with pytest.raises(FlagPerfError, match="names no devices"):
        granted(plan_for(tmp_path, "process"), step)


def test_without_slurm_a_hosts_own_settings_are_none_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_for(tmp_path, "process")
    by_ssh = replace(plan, cluster=replace(plan.cluster, slurm=None))
    assert granted(by_ssh, in_step(monkeypatch, CUDA_VISIBLE_DEVICES="7")) == ()
