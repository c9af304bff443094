"""An API server that fails to answer now and then: the real kubectl, a fake server, and this machine as the pods."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.hosts import answers, open_allocator
from run_benchmarks.hosts.base import AllocationError, NoAnswerError
from run_benchmarks.hosts.kubernetes import allocator, ends, pending
from run_benchmarks.plan.records import Plan
from tests.fakes import kubelets
from tests.fakes.kubelets import Processes
from tests.fakes.kubernetes_api import OK, KubernetesApi
from tests.run_benchmarks.plan.tree import TEST_CONF, make_tree
from tests.run_benchmarks.transports.conftest import eventually, need_kubectl

UID = "run20261127230000-abcdef"
CLUSTER = 'HOSTS = kubernetes(namespace="bench", image="registry.local/toy:1", pending_limit={limit})\n'
LIMIT_S = 120.0
PODS, JOBS = ("GET", "pods"), ("GET", "jobs")


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesApi]:
    need_kubectl()
    monkeypatch.setattr(allocator, "ALIVE", str(tmp_path / "alive"))
    monkeypatch.setattr(answers, "PAUSES_S", (0.1, 0.1, 0.1))
    for module, name in ((pending, "LOOK_S"), (ends, "WATCH_S")):
        monkeypatch.setattr(module, name, 0.1)
    with KubernetesApi(Processes()).serving() as cluster:
        monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig(tmp_path / "kubeconfig")))
        yield cluster


def plan_in(tmp_path: Path, limit_s: float = 60) -> Plan:
    tree = make_tree(tmp_path)
    cases = TEST_CONF.replace("toy:pytorch:X1:1:2:1", "toy:pytorch:X1:2:1:1")
    tree.configure(cluster_conf=CLUSTER.format(limit=limit_s), test_conf=f'{cases}RUNTIME = "process"\n')
    return tree.load()


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return plan_in(tmp_path)


def in_time(work: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(work, LIMIT_S)

    return asyncio.run(bounded())


async def names(plan: Plan) -> list[str]:
    """The hosts of a round, which are given back."""
    async with open_allocator(plan, UID).acquire(plan.cases[0]) as allocation:
        return [host.name for host in allocation.hosts]


async def again(plan: Plan) -> list[str]:
    """The hosts of a round that is taken up."""
    case = replace(plan.cases[0], hosts=("node-0", "node-1"))
    async with open_allocator(plan, UID).acquire(case) as allocation:
        return [host.name for host in allocation.hosts]


@pytest.mark.parametrize(
    "request_",
    [PODS, ("POST", "jobs"), ("GET", "services"), ("DELETE", "jobs"), ("DELETE", "services")],
    ids=" ".join,
)
def test_one_error_of_the_api_costs_no_round(
    api: KubernetesApi, plan: Plan, request_: tuple[str, str]
) -> None:
    api.errors[request_] = [500, OK]
    assert in_time(names(plan)) == ["node-0", "node-1"]
    assert len(api.errors[request_]) == 1, "it was not asked for"
    assert not api.objects


def test_pods_may_be_pending_while_the_api_does_not_answer(api: KubernetesApi, plan: Plan) -> None:
    class Waiting(Processes):
        def start(self, pod: dict[str, Any]) -> dict[str, Any]:
            super().start(pod)
            return kubelets.unschedulable("no node takes it")

    async def scenario() -> None:
        round_ = asyncio.ensure_future(names(plan))
        await eventually(lambda: len(api.of_kind("pods")) == 2)
        api.errors[PODS] = [500]
        asked = len(api.requests)
        await eventually(lambda: len(api.requests) > asked + 10)
        for number, pod in enumerate(api.of_kind("pods")):
            pod["status"], pod["spec"]["nodeName"] = kubelets.running(), f"node-{number}"
        assert not round_.done()
        api.errors.clear()
        assert await round_ == ["node-0", "node-1"]

    api.kubelet = Waiting()
    in_time(scenario())


def test_an_api_that_stays_silent_is_not_asked_for_longer_than_pods_may_be_pending(
    api: KubernetesApi, tmp_path: Path
) -> None:
    api.errors[PODS] = [500]
    with pytest.raises(NoAnswerError, match="of no use just now"):
        in_time(names(plan_in(tmp_path, limit_s=2)))
    assert api.applied and not api.objects


@pytest.mark.parametrize("code", [401, 403])
def test_what_the_user_may_not_do_is_said_at_once(api: KubernetesApi, plan: Plan, code: int) -> None:
    api.errors[PODS] = [code]
    with pytest.raises(AllocationError, match=r"of no use just now|logged in"):
        in_time(names(plan))
    assert sum(method == "GET" and path.endswith("/pods") for method, path in api.requests) == 1


@pytest.mark.parametrize("code", [401, 500])
@pytest.mark.parametrize("is_search", [False, True], ids=["training", "search"])
def test_pods_of_which_nothing_is_known_are_left_alone(
    api: KubernetesApi, plan: Plan, is_search: bool, code: int
) -> None:
    """Those of a round that is taken up train: it goes on in them once the API answers."""
    roles = ("controller", "worker") if is_search else ()
    plan = replace(plan, cases=(replace(plan.cases[0], roles=roles),))

    async def scenario() -> None:
        async with open_allocator(plan, UID).acquire(plan.cases[0]):
            there = set(api.objects)
            api.errors[PODS] = [code]
            with pytest.raises(NoAnswerError):
                await again(plan)
            assert set(api.objects) == there and not any(method == "DELETE" for method, _ in api.requests)
            api.errors[PODS] = [500, OK]
            assert await again(plan) == ["node-0", "node-1"]

    in_time(scenario())
    assert not api.objects
