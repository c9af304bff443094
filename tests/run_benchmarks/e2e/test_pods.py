"""A case in pods: a real kubectl, a fake API server, and as its pods containers of this machine's engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.kubelets import Containers, pod_network
from tests.fakes.kubernetes_api import KubernetesApi
from tests.run_benchmarks.e2e.harness import QUICK, Bench
from tests.run_benchmarks.runtimes.conftest import need_engine
from tests.run_benchmarks.transports.conftest import need_kubectl

MakeBench = Callable[..., Bench]
CASE = "bert:pytorch:cpu:2:1:1"


@pytest.fixture
def cluster(data: Path) -> Iterator[KubernetesApi]:
    """Two nodes, and a claim that holds the data."""
    need_kubectl()
    need_engine("docker")
    with pod_network() as network, KubernetesApi(Containers(network, {"data": str(data)})).serving() as api:
        yield api


def test_a_case_converges_in_two_pods(
    cluster: KubernetesApi, bench: MakeBench, data: Path, image: str, tmp_path: Path
) -> None:
    run = bench([], KUBECONFIG=str(cluster.kubeconfig(tmp_path / "kubeconfig")))
    (run.config / "cluster_conf.py").write_text(
        f'HOSTS = kubernetes(image="{image}", claims={{"{data}": "data"}}, namespace="bench")\n'
    )
    run.vendor_config("cpux2x1", QUICK)
    run.test(CASES={CASE: str(data)}, RUNTIME="process", FLAGPERF_PATH_HOST="/var/tmp/flagperf")
    ended = run.run()
    assert ended.code == 0, ended.output
