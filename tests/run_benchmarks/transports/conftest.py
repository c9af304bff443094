"""A real sshd, and hosts reached by either transport."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.transports import open_transport
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.kubectl import KubectlTransport
from run_benchmarks.transports.kubectl.client import Kubectl
from run_benchmarks.transports.srun import SrunTransport
from run_benchmarks.transports.ssh import connect
from tests.fakes.kubelets import RUNNING, Processes
from tests.fakes.kubernetes_api import KubernetesApi
from tests.run_benchmarks.transports.sshd import SSHD, Sshd
from tests.slurm.fixtures import speak_to
from tests.slurm.slurm import Slurm

T = TypeVar("T")


@dataclass(frozen=True)
class Host:
    """A host to run commands on."""

    name: str
    cluster: ClusterSettings
    opener: Callable[[str, ClusterSettings], Transport] = open_transport

    def use(self, scenario: Callable[[Transport], Coroutine[Any, Any, T]], timeout: float = 60.0) -> T:
        """The result of `scenario` with an open transport, which is closed after it; never hangs."""

        async def run() -> T:
            transport = self.opener(self.name, self.cluster)
            try:
                return await asyncio.wait_for(scenario(transport), timeout)
            finally:
                await transport.close()

        return asyncio.run(run())


def need_sshd() -> None:
    """Skip where there is no sshd; in CI, where that would hide a hole, fail."""
    if SSHD is None:
        reason = "no sshd on this machine (apt-get install openssh-server)"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


def need_kubectl() -> None:
    """Skip where there is no kubectl that speaks WebSockets (1.31): what Debian has is older."""
    argv = ["kubectl", "version", "--client", "--output=json"]
    about = subprocess.run(argv, capture_output=True, text=True) if shutil.which("kubectl") else None
    version = json.loads(about.stdout)["clientVersion"] if about and about.returncode == 0 else {}
    if int(version.get("minor", "0").rstrip("+")) < 31:
        pytest.skip("no kubectl of 1.31 or later on this machine")


def live_as(server: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the server's user the client: its HOME, and no agent."""
    monkeypatch.setenv("HOME", str(server.home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts that take no connection are asked again at once."""
    monkeypatch.setattr(connect, "PAUSES_S", (0.05, 0.05))


@pytest.fixture
def make_sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Sshd]]:
    """Starts servers with the given sshd_config lines; the last one's home is the client's HOME."""
    need_sshd()
    started: list[Sshd] = []

    def make(*settings: str) -> Sshd:
        server = Sshd(tmp_path / f"sshd{len(started)}", settings)
        started.append(server)
        server.start()
        live_as(server, monkeypatch)
        return server

    yield make
    for server in started:
        server.stop()


@pytest.fixture
def sshd(make_sshd: Callable[..., Sshd]) -> Sshd:
    """A server with default settings, of this test's own."""
    return make_sshd()


@pytest.fixture(scope="session")
def shared_sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A server for tests that change nothing of it."""
    need_sshd()
    server = Sshd(tmp_path_factory.mktemp("sshd"))
    server.start()
    yield server
    server.stop()


def host_at(server: Sshd, **settings: Any) -> Host:
    """The server as a host of a cluster."""
    return Host("127.0.0.1", ClusterSettings(hosts=("127.0.0.1",), ssh_port=server.port, **settings))


@pytest.fixture(scope="session")
def shared_pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesApi]:
    """A cluster with the one pod `pod`, which is this machine; kubectl is real, the API server a fake."""
    need_kubectl()
    with KubernetesApi(Processes()).serving() as api:
        api.objects["pods", "pod"] = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "pod", "namespace": "bench"},
            "status": RUNNING,
        }
        yield api


def pod_host(api: KubernetesApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    """The pod as a host, whose kubeconfig is the user's."""
    monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig(tmp_path / "kubeconfig")))
    cluster = ClusterSettings(hosts=("pod",))
    return Host("pod", cluster, lambda name, _: KubectlTransport(name, name, Kubectl()))


@pytest.fixture(scope="module")
def shared_job(shared_slurm: Slurm) -> Iterator[int]:
    """A job that has the nodes n1 and n2 to itself, for tests that leave both as they are."""
    job = shared_slurm.allocate("--nodes=2", "--exclusive", "--gres=gpu:2")
    yield job
    shared_slurm.run("scancel", str(job))


def node_of(job: int, node: str = "n2") -> Host:
    """A node of a job as a host."""
    return Host(node, ClusterSettings(hosts=(node,)), lambda name, _: SrunTransport(str(job), name))


@pytest.fixture(params=["local", "ssh", "srun", "kubectl"])
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    """This machine, reached directly, by ssh, as a node of a job of Slurm, and as a pod by kubectl."""
    if request.param == "local":
        return Host("localhost", ClusterSettings(hosts=("localhost",)))
    if request.param == "srun":
        speak_to(request.getfixturevalue("shared_slurm"), monkeypatch)
        return node_of(request.getfixturevalue("shared_job"))
    if request.param == "kubectl":
        return pod_host(request.getfixturevalue("shared_pod"), monkeypatch, tmp_path)
    server = request.getfixturevalue("shared_sshd")
    live_as(server, monkeypatch)
    return host_at(server)


async def eventually(holds: Callable[[], bool | Awaitable[bool]], timeout: float = 20.0) -> None:
    """Wait until `holds`."""
    deadline = asyncio.get_running_loop().time() + timeout
    while True:
        result = holds()
        if await result if isinstance(result, Awaitable) else result:
            return
        assert asyncio.get_running_loop().time() < deadline, "waited in vain"
        await asyncio.sleep(0.02)
