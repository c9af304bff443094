"""A case in pods: a real kubectl, a fake API server, and as its pods containers of this machine's engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.kubelets import Containers, pod_network
from tests.fakes.kubernetes_api import KubernetesApi
from tests.run_benchmarks.e2e.harness import QUICK, Bench, Ended
from tests.run_benchmarks.runtimes.conftest import need_engine
from tests.run_benchmarks.transports.conftest import need_kubectl

MakeBench = Callable[..., Bench]
CASE, NAME = "bert:pytorch:cpu:2:1:1", "flagperf-bert-pytorch-cpu-2-1-1"


@pytest.fixture
def cluster(data: Path) -> Iterator[KubernetesApi]:
    """Two nodes, and a claim that holds the data."""
    need_kubectl()
    need_engine("docker")
    with pod_network() as network, KubernetesApi(Containers(network, {"data": str(data)})).serving() as api:
        yield api


@pytest.fixture
def run(cluster: KubernetesApi, bench: MakeBench, data: Path, image: str, tmp_path: Path) -> Bench:
    """A case on two pods, as a user has it outside the cluster."""
    made = bench([], KUBECONFIG=str(cluster.kubeconfig(tmp_path / "kubeconfig")))
    # short, for pods of a test that is killed
    claims = f'claims={{"{data}": "data"}}, pending_limit=60, abandoned_after=300'
    (made.config / "cluster_conf.py").write_text(
        f'HOSTS = kubernetes(image="{image}", {claims}, namespace="bench")\n'
    )
    made.vendor_config("cpux2x1", QUICK)
    made.test(CASES={CASE: str(data)}, RUNTIME="process", FLAGPERF_PATH_HOST="/var/tmp/flagperf")
    return made


def assert_converged(ended: Ended) -> None:
    """Two pods have trained, and the result says where."""
    assert ended.code == 0, ended.output
    (result,) = ended.rounds()
    assert (result["verdict"], result["failure"]) == ("CONVERGED", None)
    assert result["hosts"] == ["node-0", "node-1"]
    assert ended.folder is not None
    (written,) = ended.folder.glob("*/round1/result.json")
    allocation = json.loads(written.read_text())["allocation"]
    assert allocation["scheduler"] == "kubernetes" and allocation["nodes"] == ["node-0", "node-1"]
    for rank in (0, 1):
        node = written.parent / f"node-{rank}_noderank{rank}"
        assert (node / f"rank{rank}.out.log").stat().st_size
        assert (node / "cpu_monitor.log").stat().st_size


def test_a_case_converges_in_two_pods(cluster: KubernetesApi, run: Bench) -> None:
    ended = run.run()
    assert_converged(ended)
    assert not cluster.objects


def test_a_controller_in_the_cluster_takes_the_pods_that_were_applied(
    cluster: KubernetesApi, run: Bench, tmp_path: Path
) -> None:
    """What its container is to run is run here, with what its volumes hold."""
    arguments = ("--controller", "registry.local/controller:1", "--results", "results", "--apply")
    applied = run.run("kubernetes", *arguments)
    assert applied.code == 0, applied.output
    job = cluster.objects["jobs", f"{NAME}-controller"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    python, program, *options = container["command"]
    assert (python, program, container["workingDir"]) == (
        "python3",
        "run_benchmarks/run.py",
        "/flagperf/training",
    )
    run.config = tmp_path / "secret"
    run.config.mkdir()
    for name, text in cluster.objects["secrets", f"{NAME}-controller"]["stringData"].items():
        (run.config / name).write_text(text)
    paths = {"/flagperf/config": str(run.config), "/flagperf/results": str(run.folder / "result")}
    ended = run.run(*(paths.get(word, word) for word in options))
    assert_converged(ended)
    assert {kind for kind, _ in cluster.objects} == {
        "jobs",
        "roles",
        "rolebindings",
        "secrets",
        "serviceaccounts",
    }
    assert all(name == f"{NAME}-controller" for _, name in cluster.objects)
