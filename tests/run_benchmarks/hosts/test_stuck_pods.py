"""A node that never confirms the end of its pod: the real kubectl, a fake API server, and this machine as the pods."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from run_benchmarks.hosts import open_allocator
from run_benchmarks.hosts.base import AllocationError, NotGivenBackError
from run_benchmarks.hosts.kubernetes import allocator, ends, pending
from run_benchmarks.hosts.kubernetes.allocator import KubernetesHosts
from run_benchmarks.left_behind import remove_run
from run_benchmarks.plan.records import Plan
from tests.fakes import kubelets
from tests.fakes.kubelets import Processes
from tests.fakes.kubernetes_api import KubernetesApi
from tests.ports import free_port
from tests.run_benchmarks.plan.tree import TEST_CONF, make_tree
from tests.run_benchmarks.transports.conftest import eventually, need_kubectl
from tests.run_benchmarks.whole_run import make_whole_run

UID = "run20261127230000-abcdef"
CLUSTER = 'HOSTS = kubernetes(namespace="bench", image="registry.local/toy:1", pending_limit=60)\n'
SOON_S, LIMIT_S = 2.0, 240.0


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesApi]:
    need_kubectl()
    monkeypatch.setattr(allocator, "ALIVE", str(tmp_path / "alive"))
    monkeypatch.setattr(allocator, "DELETE_S", SOON_S)
    for module, name in ((pending, "LOOK_S"), (ends, "WATCH_S")):
        monkeypatch.setattr(module, name, 0.1)
    with KubernetesApi(Processes()).serving() as cluster:
        monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig(tmp_path / "kubeconfig")))
        yield cluster


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    tree = make_tree(tmp_path)
    cases = TEST_CONF.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:1")
    tree.configure(cluster_conf=CLUSTER, test_conf=f'{cases}RUNTIME = "process"\n')
    return tree.load()


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the user is warned of."""
    lines: list[str] = []
    monkeypatch.setattr(pending.LOGGER, "warning", lines.append)
    return lines


def in_time(work: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work, LIMIT_S)

    return asyncio.run(bounded())


def hosts_of(plan: Plan, **settings: Any) -> KubernetesHosts:
    """A controller's; `settings` in the place of the plan's own."""
    assert plan.cluster.kubernetes
    cluster = replace(plan.cluster, kubernetes=replace(plan.cluster.kubernetes, **settings))
    hosts = open_allocator(replace(plan, cluster=cluster), UID)
    assert isinstance(hosts, KubernetesHosts)
    return hosts


def call_jobs(monkeypatch: pytest.MonkeyPatch, *suffixes: str) -> None:
    """Let jobs have these at the end of their names."""
    coming = iter(suffixes)
    monkeypatch.setattr(allocator, "secrets", SimpleNamespace(token_hex=lambda _: next(coming)))


def end_a_round(api: KubernetesApi, plan: Plan, hosts: KubernetesHosts) -> None:
    """Run the first round, whose second pod node-1 does not give back."""

    async def first() -> None:
        async with hosts.acquire(plan.cases[0]):
            api.silent.add("node-1")

    with pytest.raises(NotGivenBackError, match=r"still there 2 s .*: pod \S+-1-x7k2p on node-1\n"):
        in_time(first())
    assert len(api.of_kind("pods")) == 1


def test_it_costs_no_later_round(
    api: KubernetesApi, plan: Plan, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = hosts_of(plan)
    call_jobs(
        monkeypatch, "0001", "0001", "0002", "0003"
    )  # the first is still there when the second is named
    end_a_round(api, plan, hosts)
    monkeypatch.setattr(
        allocator, "DELETE_S", LIMIT_S
    )  # nobody waits for so long: what is stuck is not waited for
    api.kubelet = Processes({**kubelets.running(), "conditions": []})

    async def start() -> None:
        """Let the new pods be ready once they have been looked at."""
        await eventually(lambda: len(api.of_kind("pods")) == 3)
        asked = len(api.requests)
        await eventually(lambda: len(api.requests) > asked + 2)
        for pod in api.of_kind("pods")[1:]:
            pod["status"] = kubelets.running()

    async def later(number: int) -> None:
        starting = asyncio.create_task(start())
        async with hosts.acquire(plan.cases[0]) as allocation:
            await starting
            assert [host.name for host in allocation.hosts] == ["node-0", "node-2"]
            assert allocation.tenure
            assert (await allocation.tenure.record()).job == f"flagperf-{UID}-000{number}"
            ending = asyncio.create_task(allocation.tenure.end())
            asked = len(api.requests)
            await eventually(lambda: len(api.requests) > asked + 2)
            assert not ending.done(), "the pod that is left is none of this round's"
            ending.cancel()
        assert len(api.of_kind("pods")) == 1

    for number in (2, 3):
        in_time(later(number))
    assert warnings == [], "it has been told at the end of its own round"
    (_, _, second) = (each for each in api.applied if each["kind"] == "Job")
    assert '"node-1"' in json.dumps(second["spec"]["template"]["spec"]["affinity"]["nodeAffinity"])
    monkeypatch.setattr(allocator, "DELETE_S", SOON_S)
    with pytest.raises(NotGivenBackError, match="on node-1"):
        in_time(hosts.close())
    api.silent.clear()
    monkeypatch.setattr(allocator, "DELETE_S", LIMIT_S)
    in_time(hosts.close())
    assert not api.objects


def test_pods_that_wait_in_vain_say_what_is_still_there(
    api: KubernetesApi, plan: Plan, warnings: list[str]
) -> None:
    """Also where one of them is not given back either: the first error is the one that a round ends with."""
    hosts = hosts_of(plan, pending_limit=1.0)
    end_a_round(api, plan, hosts)

    class HasRoomForOne(Processes):
        def start(self, pod: dict[str, Any]) -> dict[str, Any]:
            if "-0-" in pod["metadata"]["name"]:
                return kubelets.unschedulable("0/2 nodes are available")
            api.silent.add(pod["spec"]["nodeName"])
            return super().start(pod)

    api.kubelet = HasRoomForOne()

    async def second() -> None:
        async with hosts.acquire(plan.cases[0]):
            pass

    said = r"0/2 nodes are available \(not given back by earlier rounds: pod \S+ on node-1\)"
    with pytest.raises(AllocationError, match=said):
        in_time(second())
    assert len(warnings) == 1 and "on node-2\n" in warnings[0] and "on node-1" not in warnings[0]


def test_who_takes_the_run_up_goes_on_in_the_pods_of_the_newest_round_and_gets_new_ones(
    api: KubernetesApi, plan: Plan, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts, case = hosts_of(plan), plan.cases[0]
    call_jobs(monkeypatch, "0001", "0002", "0003")
    end_a_round(api, plan, hosts)

    async def scenario() -> None:
        async with hosts.acquire(case) as second:
            names = tuple(host.name for host in second.hosts)
            with suppress(NotGivenBackError):
                async with hosts_of(plan).acquire(replace(case, hosts=names)) as again:
                    addresses = [host.address for host in again.hosts]
            assert addresses == [host.address for host in second.hosts]
        async with hosts_of(plan).acquire(case) as anew:
            monkeypatch.setattr(allocator, "DELETE_S", LIMIT_S)
            assert [host.name for host in anew.hosts] == ["node-0", "node-2"]

    in_time(scenario())
    assert len(warnings) == 1 and "on node-1" in warnings[0]


def test_who_cleans_up_is_told(api: KubernetesApi, plan: Plan) -> None:
    end_a_round(api, plan, hosts_of(plan))
    error = in_time(remove_run(plan.cluster, plan.run, UID))["Kubernetes"]
    assert isinstance(error, NotGivenBackError) and "on node-1" in error.message


def test_a_deletion_that_is_refused_is_no_pod_that_does_not_end(api: KubernetesApi, plan: Plan) -> None:
    def refuse(plural: str, name: str) -> None:
        raise RuntimeError("the API server's answer is an error")

    async def scenario() -> None:
        async with hosts_of(plan).acquire(plan.cases[0]):
            api.delete = refuse  # type: ignore[method-assign]

    with pytest.raises(Exception, match="kubectl") as failed:
        in_time(scenario())
    assert not isinstance(failed.value, NotGivenBackError)


def test_doctor_shows_what_it_has_seen_of_hosts_that_it_cannot_give_back(
    api: KubernetesApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_whole_run(tmp_path / "run", free_port(), monkeypatch)
    run.tree.configure(cluster_conf=f"{CLUSTER}MASTER_PORT = {free_port()}\n")
    assert run.main("doctor", "--json") == 0, capsys.readouterr().err
    before = json.loads(capsys.readouterr().out)

    class Silent(Processes):
        def start(self, pod: dict[str, Any]) -> dict[str, Any]:
            api.silent.add(pod["spec"]["nodeName"])
            return super().start(pod)

    api.kubelet = Silent()
    assert run.main("doctor", "--json") == 3
    shown = capsys.readouterr()
    after = json.loads(shown.out)
    assert after["healthy"] and after["hosts"]["node-0"].keys() == before["hosts"]["node-0"].keys()
    assert "the hosts could not be given back: Kubernetes: still there" in shown.err
    assert shown.err.count("on node-0\n") == 1
