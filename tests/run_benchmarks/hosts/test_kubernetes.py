"""Pods as hosts: the real kubectl, and an API server that is a fake; its pods are this machine."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.hosts import open_allocator, standing_hosts
from run_benchmarks.hosts.base import Allocation, AllocationError
from run_benchmarks.hosts.kubernetes import allocator, ends, pending
from run_benchmarks.hosts.kubernetes.allocator import KubernetesHosts
from run_benchmarks.left_behind import Removed, remove_run, survey
from run_benchmarks.plan.kubernetes import KubernetesSettings
from run_benchmarks.plan.records import Plan
from run_benchmarks.transports.base import TransportError
from tests.fakes import kubelets
from tests.fakes.kubelets import Processes
from tests.fakes.kubernetes_api import KubernetesApi
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree, make_tree
from tests.run_benchmarks.process_table import pids_with
from tests.run_benchmarks.transports.conftest import eventually, need_kubectl
from utils.records import FailureClass, Verdict

UID = "run20261127230000-abcdef"
CASE = "toy:pytorch:X1:2:1:1"
CLUSTER = 'HOSTS = kubernetes(namespace="bench", image="registry.local/toy:1", pending_limit=20)\n'
LIMIT_S = 120.0


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesApi]:
    """A cluster that this process's kubectl finds; what the pods are told with goes to the test's own folder."""
    need_kubectl()
    monkeypatch.setattr(allocator, "ALIVE", str(tmp_path / "alive"))
    for module, name in ((pending, "LOOK_S"), (pending, "NO_PODS_S"), (ends, "WATCH_S")):
        monkeypatch.setattr(module, name, 0.1)
    with KubernetesApi(Processes()).serving() as cluster:
        monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig(tmp_path / "kubeconfig")))
        yield cluster


def tree_with(tmp_path: Path, cluster: str = CLUSTER, test: str = "") -> Tree:
    tree = make_tree(tmp_path)
    cases = TEST_CONF.replace("toy:pytorch:X1:1:2:1", CASE)
    tree.configure(cluster_conf=cluster, test_conf=f'{cases}RUNTIME = "process"\n{test}')
    return tree


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return tree_with(tmp_path).load()


def on_pods(plan: Plan, work: Callable[[Allocation], Awaitable[Any]], **settings: Any) -> Any:
    """What `work` gives on the pods that the plan's case gets; `settings` in the place of the plan's own."""

    async def scenario() -> Any:
        assert plan.cluster.kubernetes
        cluster = replace(plan.cluster, kubernetes=replace(plan.cluster.kubernetes, **settings))
        hosts = open_allocator(replace(plan, cluster=cluster), UID)
        async with hosts.acquire(plan.cases[0]) as allocation:
            return await work(allocation)

    return asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


async def nothing(allocation: Allocation) -> None:
    """The pods are there, and that is all."""


def test_a_node_after_which_no_folder_can_be_named_is_an_error_of_its_round(
    api: KubernetesApi, plan: Plan
) -> None:
    class LongNames(Processes):
        def start(self, pod: dict[str, Any]) -> dict[str, Any]:
            pod["spec"]["nodeName"] = "n" * 253
            return super().start(pod)

    api.kubelet = LongNames()
    with pytest.raises(AllocationError, match="named after more than 200 bytes") as caught:
        on_pods(plan, nothing)
    assert "shorter name" in caught.value.remedy
    assert not api.objects


def test_a_case_gets_pods_by_rank_and_gives_them_back(api: KubernetesApi, plan: Plan, tmp_path: Path) -> None:
    async def look(allocation: Allocation) -> list[str]:
        assert api.of_kind("jobs") and api.of_kind("services") and len(api.of_kind("pods")) == 2
        await eventually((tmp_path / "alive").exists)
        record = await allocation.tenure.record() if allocation.tenure else None
        assert record and record.nodes == ("node-0", "node-1")
        done = [await host.transport.run(["echo", "it runs"]) for host in allocation.hosts]
        return [
            f"{host.name} {host.address} {each.stdout}"
            for host, each in zip(allocation.hosts, done, strict=True)
        ]

    first, second = on_pods(plan, look)
    job = first.split()[1].partition(".")[2]
    assert first == f"node-0 {job}-0.{job} it runs\n" and second == f"node-1 {job}-1.{job} it runs\n"
    assert job.startswith(f"flagperf-{UID}-")
    assert not api.objects


def test_a_pod_that_does_not_run_is_none_of_the_rounds(api: KubernetesApi, plan: Plan) -> None:
    class WithAnotherBeside(Processes):
        def start(self, pod: dict[str, Any]) -> dict[str, Any]:
            beside = {**pod["metadata"], "name": f"{pod['metadata']['name']}-beside"}
            status = kubelets.unschedulable("no node takes it")
            api.objects["pods", beside["name"]] = {**pod, "metadata": beside, "status": status}
            return super().start(pod)

    async def names(allocation: Allocation) -> list[str]:
        return [host.name for host in allocation.hosts]

    api.kubelet = WithAnotherBeside()
    assert on_pods(plan, names) == ["node-0", "node-1"]


@pytest.mark.parametrize("work", [nothing, "fails", "is cancelled"])
def test_nothing_stays_on_any_way_out(api: KubernetesApi, plan: Plan, work: Any) -> None:
    async def fail(allocation: Allocation) -> None:
        raise RuntimeError("the round breaks")

    async def hang(allocation: Allocation) -> None:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        await asyncio.sleep(60)

    with suppress(RuntimeError, asyncio.CancelledError):
        on_pods(
            plan, {"fails": fail, "is cancelled": hang}.get(work, work) if isinstance(work, str) else work
        )
    assert api.applied and not api.objects


@pytest.mark.parametrize(
    ("status", "limit", "said"),
    [
        (kubelets.unschedulable("0/3 nodes are available: 3 Insufficient nvidia.com/gpu."), 1.0,
         "still pending after 1 s: Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu"),
        (kubelets.pending("InvalidImageName", "couldn't parse image"), 60.0,
         "its pods cannot start: InvalidImageName: couldn't parse image"),
        (kubelets.pending("ImagePullBackOff", "manifest unknown"), 60.0,
         "the image cannot be pulled: ImagePullBackOff: manifest unknown"),
    ],
)  # fmt: skip
def test_pods_that_never_start_are_refused_in_the_clusters_words(
    api: KubernetesApi, plan: Plan, monkeypatch: pytest.MonkeyPatch, status: Any, limit: float, said: str
) -> None:
    monkeypatch.setattr(pending, "PULL_PATIENCE_S", 0.5)
    api.kubelet = Processes(status)
    with pytest.raises(AllocationError) as refused:
        on_pods(plan, nothing, pending_limit=limit)
    assert said in str(refused.value) and refused.value.remedy
    assert refused.value.failure_class is FailureClass.HOSTS_NOT_ACQUIRED
    assert not api.of_kind("jobs") and not api.of_kind("pods")


def test_a_job_that_may_make_no_pods_is_refused_by_its_event(api: KubernetesApi, plan: Plan) -> None:
    api.forbidden_pods = 'violates PodSecurity "restricted:latest": runAsNonRoot != true'
    with pytest.raises(AllocationError, match="violates PodSecurity"):
        on_pods(plan, nothing)


def test_pods_with_two_images_are_no_hosts_of_one_round(api: KubernetesApi, plan: Plan) -> None:
    class Moved(Processes):
        def start(self, pod: Any) -> Any:
            status = super().start(pod)
            status["containerStatuses"][0]["imageID"] = f"toy@sha256:{pod['spec']['nodeName']}"
            return status

    api.kubelet = Moved()
    with pytest.raises(AllocationError, match="different images: node-0 toy@sha256:node-0, node-1"):
        on_pods(plan, nothing)


def failed(reason: str, **more: Any) -> dict[str, Any]:
    return {"phase": "Failed", "reason": reason, "message": f"it was {reason}", **more}


DISRUPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "for another",
}
KILLED = {"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}
ENDS = [
    (failed("Evicted"), FailureClass.ALLOCATION_PREEMPTED, Verdict.FAILED),
    ({**kubelets.running(), "conditions": [DISRUPTED]}, FailureClass.ALLOCATION_PREEMPTED, Verdict.FAILED),
    (
        {"phase": "Failed", "containerStatuses": [KILLED]},
        FailureClass.ALLOCATION_OUT_OF_MEMORY,
        Verdict.FAILED,
    ),
    (failed("NodeLost"), FailureClass.NODE_FAILED, Verdict.UNREACHABLE),
    ({"phase": "Unknown"}, FailureClass.NODE_FAILED, Verdict.UNREACHABLE),
    (failed("DeadlineExceeded"), FailureClass.ALLOCATION_TIME_LIMIT, Verdict.TIMED_OUT),
    ({"phase": "Succeeded"}, FailureClass.ALLOCATION_ENDED, Verdict.FAILED),
    (None, FailureClass.ALLOCATION_CANCELLED, Verdict.FAILED),
]


@pytest.mark.parametrize(("status", "kind", "verdict"), ENDS)
def test_a_pod_that_is_lost_has_its_class_and_its_evidence(
    api: KubernetesApi, plan: Plan, status: Any, kind: FailureClass, verdict: Verdict
) -> None:
    async def lose(allocation: Allocation) -> Any:
        pod = api.of_kind("pods")[1]
        if status is None:
            api.delete("pods", pod["metadata"]["name"])
        else:
            pod["status"] = status
        assert allocation.tenure
        end = await allocation.tenure.end()
        assert (await allocation.tenure.record()).state == kind.value
        if status is None:
            with pytest.raises(TransportError, match="contact was lost"):
                await allocation.hosts[1].transport.run(["true"])
        return end

    end = on_pods(plan, lose)
    assert (end.failure_class, end.verdict, end.is_over) == (kind, verdict, True)
    assert "-1-x7k2p" in end.evidence and kind.value in end.remedy
    assert end.host == ("node-1" if kind is FailureClass.NODE_FAILED else "")


def test_why_one_pod_was_taken_goes_before_that_its_job_deletes_the_others(
    api: KubernetesApi, plan: Plan
) -> None:
    async def lose(allocation: Allocation) -> Any:
        first, second = api.of_kind("pods")
        first["metadata"]["deletionTimestamp"] = "2026-11-27T23:10:00Z"
        second["status"] = {**kubelets.running(), "conditions": [DISRUPTED]}
        assert allocation.tenure
        return await allocation.tenure.end()

    assert on_pods(plan, lose).failure_class is FailureClass.ALLOCATION_PREEMPTED


def test_a_search_goes_on_without_a_workers_pod_and_ends_with_its_controllers(
    api: KubernetesApi, plan: Plan
) -> None:
    async def lose(allocation: Allocation) -> Any:
        controllers, workers = api.of_kind("pods")
        assert allocation.tenure
        ending = asyncio.create_task(allocation.tenure.end())
        workers["status"] = failed("NodeShutdown")
        asked = len(api.requests)
        await eventually(lambda: len(api.requests) > asked + 2)
        assert not ending.done()
        controllers["status"] = failed("Evicted")
        return await ending

    search = replace(plan.cases[0], roles=("controller", "worker"))
    end = on_pods(replace(plan, cases=(search,)), lose)
    assert end.failure_class is FailureClass.ALLOCATION_PREEMPTED and "-0-x7k2p" in end.evidence
    (job,) = (each for each in api.applied if each["kind"] == "Job")
    assert job["spec"]["backoffLimit"] == 2**31 - 1, (
        "the cluster would end all pods with so many of one node's"
    )


def test_a_controller_that_takes_a_round_up_finds_its_pods_again(api: KubernetesApi, plan: Plan) -> None:
    async def scenario() -> None:
        case = plan.cases[0]
        async with open_allocator(plan, UID).acquire(case) as first:
            made = len(api.applied)
            again = replace(case, hosts=tuple(host.name for host in first.hosts))
            async with open_allocator(plan, UID).acquire(again) as second:
                assert [host.name for host in second.hosts] == ["node-0", "node-1"]
                assert len(api.applied) == made
        with pytest.raises(AllocationError, match="no pods of this run any more"):
            async with open_allocator(plan, UID).acquire(again):
                pass

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


@pytest.mark.parametrize("is_there", [True, False], ids=["failed", "gone"])
def test_a_search_without_a_workers_pod_is_taken_up_in_its_others(
    api: KubernetesApi, plan: Plan, is_there: bool
) -> None:
    """The pod that the job has made in its place knows nothing of the round, and is no host of it."""

    async def scenario() -> None:
        search = replace(plan.cases[0], roles=("controller", "worker"))
        async with open_allocator(plan, UID).acquire(search) as first:
            _, lost = api.of_kind("pods")
            name = lost["metadata"]["name"]
            beside = {**lost["metadata"], "name": f"{name}-2", "creationTimestamp": "2099-01-01T00:00:00Z"}
            other = {**lost["spec"], "nodeName": lost["spec"]["nodeName"] if is_there else "node-7"}
            api.objects["pods", beside["name"]] = {**lost, "metadata": beside, "spec": other}
            lost["status"] = failed("NodeShutdown")
            if not is_there:
                del api.objects["pods", name]
            again = replace(search, hosts=tuple(host.name for host in first.hosts))
            async with open_allocator(plan, UID).acquire(again) as second:
                assert [(host.name, host.address) for host in second.hosts] == [
                    (host.name, host.address) for host in first.hosts
                ]
                assert (await second.hosts[0].transport.run(["echo", "it runs"])).ok
                with pytest.raises(TransportError):
                    await second.hosts[1].transport.run(["true"])

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


@pytest.mark.parametrize("is_there", [True, False], ids=["failed", "gone"])
@pytest.mark.parametrize(
    ("roles", "rank"),
    [(("controller", "worker"), 0), ((), 0), ((), 1)],
    ids=["search, controller", "rank 0", "rank 1"],
)
def test_a_round_without_a_pod_that_it_needs_does_not_go_on_and_the_logs_of_the_others_can_be_fetched(
    api: KubernetesApi, plan: Plan, roles: tuple[str, ...], rank: int, is_there: bool
) -> None:
    async def scenario() -> None:
        case = replace(plan.cases[0], roles=roles)
        async with open_allocator(plan, UID).acquire(case) as first:
            lost = api.of_kind("pods")[rank]
            lost["status"] = failed("Evicted")
            if not is_there:
                del api.objects["pods", lost["metadata"]["name"]]
            again = replace(case, hosts=tuple(host.name for host in first.hosts))
            hosts = open_allocator(plan, UID)
            async with hosts.acquire(again) as second, hosts.revisit(again.hosts) as there:
                assert second.end and "docs/failures.md" in second.end.remedy
                assert ("Evicted" if is_there else "not there any more") in second.end.message
                assert tuple(host.name for host in second.hosts) == again.hosts
                assert [host.name for host in there] == [again.hosts[1 - rank]]
                assert (await there[0].transport.run(["echo", "it runs"])).ok
            assert not api.of_kind("pods")

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


def test_a_search_of_which_no_pod_is_left_is_not_taken_up(api: KubernetesApi, plan: Plan) -> None:
    async def scenario() -> None:
        search = replace(plan.cases[0], roles=("controller", "worker"))
        async with open_allocator(plan, UID).acquire(search) as first:
            lost, other = api.of_kind("pods")
            del api.objects["pods", lost["metadata"]["name"]]
            other["spec"]["nodeName"] = "node-7"  # the job has made it in the place of the worker's
            again = replace(search, hosts=tuple(host.name for host in first.hosts))
            async with open_allocator(plan, UID).acquire(again):
                pass

    with pytest.raises(AllocationError, match="not there any more") as caught:
        asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    assert caught.value.end and "docs/failures.md" in caught.value.remedy


@pytest.mark.parametrize("rank", [0, 1], ids=["controller", "worker"])
def test_a_pod_that_came_to_the_same_node_is_not_the_one_that_a_search_began_in(
    api: KubernetesApi, plan: Plan, rank: int
) -> None:
    async def scenario() -> None:
        search = replace(plan.cases[0], roles=("controller", "worker"))
        async with open_allocator(plan, UID).acquire(search) as first:
            earlier = await first.tenure.record() if first.tenure else None
            lost = api.of_kind("pods")[rank]
            name = lost["metadata"]["name"]
            beside = {**lost["metadata"], "name": f"{name}-2", "creationTimestamp": "2099-01-01T00:00:00Z"}
            api.objects["pods", beside["name"]] = {**lost, "metadata": beside}
            del api.objects["pods", name]
            again = replace(search, hosts=tuple(host.name for host in first.hosts))
            async with open_allocator(plan, UID).acquire(again, earlier) as second:
                assert (await second.hosts[1 - rank].transport.run(["echo", "it runs"])).ok
                with pytest.raises(TransportError):
                    await second.hosts[rank].transport.run(["true"])
                kind = second.end and second.end.failure_class
                assert kind is (None if rank else FailureClass.ALLOCATION_CANCELLED)

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


def test_a_node_that_failed_gets_pods_only_where_no_other_takes_them(api: KubernetesApi, plan: Plan) -> None:
    async def scenario() -> None:
        hosts = open_allocator(plan, UID)
        hosts.avoid("node-7")
        async with hosts.acquire(plan.cases[0]):
            pass

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))
    (job,) = (each for each in api.applied if each["kind"] == "Job")
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (rule,) = affinity.pop("preferredDuringSchedulingIgnoredDuringExecution")
    assert rule["preference"] == {
        "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["node-7"]}]
    }
    assert not affinity


def test_what_a_run_has_left_is_found_and_removed(api: KubernetesApi, plan: Plan) -> None:
    async def scenario() -> None:
        async with open_allocator(plan, UID).acquire(plan.cases[0]):
            api.of_kind("pods")[0]["status"]["reason"] = "of its kubelet's own" * 100
            left = (await survey(plan.cluster, plan.run)).of_run(UID)["Kubernetes"]
            assert left.running and len(left.units) == 2
            removed = (await remove_run(plan.cluster, plan.run, UID))["Kubernetes"]
            assert isinstance(removed, Removed) and len(removed.names) == 2 and not api.objects

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


def test_the_pods_of_a_job_that_is_there_are_kept_to_the_runs_end(api: KubernetesApi, plan: Plan) -> None:
    async def scenario() -> None:
        assert plan.cluster.kubernetes
        async with open_allocator(plan, UID).acquire(plan.cases[0]):
            (job,) = api.of_kind("jobs")
            name = job["metadata"]["name"]
            hosts = KubernetesHosts(KubernetesSettings(namespace="bench", job=name), "another")
            for _ in range(2):
                async with hosts.acquire(plan.cases[0]) as allocation:
                    assert len(allocation.hosts) == 2
                assert api.of_kind("jobs")
            await hosts.close()
            assert not api.objects
            assert ("DELETE", f"/apis/batch/v1/namespaces/bench/jobs/{name}") in api.requests

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


def test_who_looks_or_cleans_up_deletes_no_job_by_its_name(api: KubernetesApi, plan: Plan) -> None:
    """It is of a run that trains there: `doctor` took its pods away, and so did `cleanup` of a run that was over."""

    async def scenario() -> None:
        assert plan.cluster.kubernetes
        async with open_allocator(plan, UID).acquire(plan.cases[0]):
            job = api.of_kind("jobs")[0]["metadata"]["name"]
            named = replace(plan.cluster, kubernetes=replace(plan.cluster.kubernetes, job=job))
            async with standing_hosts(replace(plan, cluster=named), "doctor-1") as (seen, _):
                assert len(seen.cluster.hosts) == 2
            await remove_run(named, plan.run, f"{UID[:-1]}0")
            assert len(api.of_kind("jobs")) == 1 and len(api.of_kind("pods")) == 2

    asyncio.run(asyncio.wait_for(scenario(), LIMIT_S))


def test_a_lost_connection_is_no_end_of_a_command(api: KubernetesApi, plan: Plan) -> None:
    mark = f"{LIMIT_S:g}.{secrets.randbelow(10**9):09}"  # seconds, by which the command is found

    async def cut(allocation: Allocation) -> None:
        running = asyncio.ensure_future(allocation.hosts[0].transport.run(["sleep", mark]))
        await eventually(lambda: bool(pids_with(mark)))
        await asyncio.to_thread(api.cut)
        with pytest.raises(TransportError, match="contact was lost"):
            await running
        for pid in pids_with(mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    on_pods(plan, cut)


def test_nothing_of_a_command_stands_in_a_request(api: KubernetesApi, plan: Plan) -> None:
    """The API server writes what it is asked for into its audit log, and proxies keep URLs short."""

    async def ask(allocation: Allocation) -> None:
        done = await allocation.hosts[0].transport.run(["echo", "x" * 100_000, "a-word-of-mine"])
        assert done.stdout.endswith("a-word-of-mine\n")

    on_pods(plan, ask)
    assert api.commands and not any("a-word-of-mine" in each for each in api.commands)
    assert max(map(len, api.commands)) < 1500
