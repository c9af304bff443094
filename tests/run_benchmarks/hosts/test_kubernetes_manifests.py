"""What is asked of Kubernetes: valid by its own schemas, and within the Pod Security Standard `restricted`."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from run_benchmarks import verbs
from run_benchmarks.hosts.kubernetes.case import controller_of, name_of, workers_of
from run_benchmarks.hosts.kubernetes.manifests import HOLD, as_yaml, label_value
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.vendors import find_vendors, read_vendor
from run_benchmarks.verbs import options
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree, make_tree
from utils.errors import FlagPerfError

TRAINING = Path(__file__).resolve().parents[3] / "training"
VERSIONS = ("1.27", "1.30", "1.33", "1.37")
PLAIN = 'HOSTS = kubernetes(image="registry.local/toy:1")\n'
RICH = """\
HOSTS = kubernetes(
    namespace="bench", context="prod", image="registry.local/toy@sha256:1234", user=4711,
    resources={"acme.com/chip": 2, "cpu": "16", "memory": "64Gi"},
    claims={"/data": "flagperf-data", "/checkpoints": "flagperf-checkpoints"},
    node_selector={"acme.com/chip.product": "X1"}, tolerations=["acme.com/chip"],
    labels={"kueue.x-k8s.io/queue-name": "bench"}, annotations={"k8s.v1.cni.cncf.io/networks": "rdma"},
    pull_secrets=["registry"], priority_class="bench", runtime_class="acme", share_nodes=True,
    pending_limit=7200, abandoned_after=600,
)
"""
CASE = "toy:pytorch:X1:2:1:1"


def tree_with(tmp_path: Path, cluster: str, test: str = 'RUNTIME = "process"\n') -> Tree:
    tree = make_tree(tmp_path)
    tree.configure(cluster_conf=cluster, test_conf=TEST_CONF.replace("toy:pytorch:X1:1:2:1", CASE) + test)
    return tree


def manifests_of(tree: Tree) -> list[dict[str, Any]]:
    """All that `run.py kubernetes` prints of the case, with its controller."""
    plan, settings = tree.load(), tree.load().cluster.kubernetes
    assert settings
    (case,) = plan.cases
    controller = controller_of(plan, settings, case, tree.config, "registry.local/controller:1", "results")
    workers = workers_of(plan, settings, case, name_of(case))
    return [*workers.manifests({"node-3"}), *controller.manifests()]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("cluster", [PLAIN, RICH])
def test_they_are_valid_by_kubernetes_own_schemas(tmp_path: Path, cluster: str, version: str) -> None:
    manifests = manifests_of(tree_with(tmp_path, cluster))
    assert [each["kind"] for each in manifests] == [
        *("Service", "Job", "ServiceAccount", "Role", "RoleBinding", "Secret", "Job")
    ]
    for each in manifests:
        kubernetes_validate.validate(each, version, strict=True)
    assert list(yaml.safe_load_all(as_yaml(manifests))) == manifests
    wrong = {**manifests[1], "spec": {**manifests[1]["spec"], "completion": 2}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


@pytest.mark.parametrize("cluster", [PLAIN, RICH])
def test_every_pod_keeps_to_the_standard_restricted(tmp_path: Path, cluster: str) -> None:
    """As kubernetes.io/docs/concepts/security/pod-security-standards has it."""
    pods = [
        each["spec"]["template"]["spec"]
        for each in manifests_of(tree_with(tmp_path, cluster))
        if each["kind"] == "Job"
    ]
    assert len(pods) == 2
    for pod in pods:
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & pod.keys()
        assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        kinds = {kind for volume in pod["volumes"] for kind in volume.keys() - {"name"}}
        assert kinds <= {"emptyDir", "persistentVolumeClaim", "secret"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
            assert "ports" not in container
    workers, controller = pods
    assert workers["automountServiceAccountToken"] is False and "serviceAccountName" not in workers
    assert controller["serviceAccountName"]


def test_the_controller_may_do_what_it_has_to_and_no_more(tmp_path: Path) -> None:
    role = next(each for each in manifests_of(tree_with(tmp_path, PLAIN)) if each["kind"] == "Role")
    rules = [(each["resources"], each["verbs"], each.get("resourceNames")) for each in role["rules"]]
    own, verbs_of_own = ["flagperf-toy-pytorch-x1-2-1-1"], ["get", "list", "watch", "delete"]
    assert rules == [
        (["pods", "events"], ["get", "list"], None),
        (["pods/exec"], ["get", "create"], None),
        (["jobs"], verbs_of_own, own),
        (["services"], verbs_of_own, own),
    ]


def test_what_the_settings_ask_for_stands_in_the_pods(tmp_path: Path) -> None:
    _, job, *_ = manifests_of(tree_with(tmp_path, RICH))
    pod, metadata = job["spec"]["template"]["spec"], job["spec"]["template"]["metadata"]
    (container,) = pod["containers"]
    assert container["resources"]["limits"] == {"acme.com/chip": "2", "cpu": "16", "memory": "64Gi"}
    assert {each["mountPath"] for each in container["volumeMounts"]} == {"/dev/shm", "/data", "/checkpoints"}
    assert pod["volumes"][0]["emptyDir"] == {"medium": "Memory", "sizeLimit": "32Gi"}
    assert (pod["priorityClassName"], pod["runtimeClassName"]) == ("bench", "acme")
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["tolerations"] == [{"key": "acme.com/chip", "operator": "Exists"}]
    assert metadata["labels"]["kueue.x-k8s.io/queue-name"] == "bench"
    assert metadata["annotations"] == {"k8s.v1.cni.cncf.io/networks": "rdma"}
    assert "podAntiAffinity" not in pod["affinity"]
    assert container["command"][-2:] == ["600", "7200"]
    # a pod may wait for the others so long as these may be pending
    assert container["startupProbe"]["failureThreshold"] * container["startupProbe"]["periodSeconds"] > 7200


@pytest.mark.parametrize(
    ("claims", "checkpoints", "read_only"),
    [
        ({"/data": "a", "/checkpoints": "b"}, "/checkpoints/mine", {"a"}),
        ({"/data/": "a"}, "", {"a"}),
        ({"/data": "a"}, "/data/checkpoints", set()),
        ({"/": "a", "/data": "b", "/data/checkpoints": "c"}, "/data/checkpoints", {"b"}),
        ({"/dat": "a", "/checkpoints": "b"}, "/checkpoints", set()),
    ],
)
def test_the_claim_of_the_data_is_read_only_unless_the_run_writes_there(
    tmp_path: Path, claims: dict[str, str], checkpoints: str, read_only: set[str]
) -> None:
    hosts = f'HOSTS = kubernetes(image="registry.local/toy:1", claims={claims!r})\n'
    test = f'RUNTIME = "process"\nCHECKPOINT_PATH = "{checkpoints}"\n'
    _, job, *_ = manifests_of(tree_with(tmp_path, hosts, test))
    kubernetes_validate.validate(job, VERSIONS[0], strict=True)
    volumes = job["spec"]["template"]["spec"]["volumes"]
    sources = [each["persistentVolumeClaim"] for each in volumes if "persistentVolumeClaim" in each]
    assert [each["claimName"] for each in sources] == list(claims.values())
    assert {each["claimName"] for each in sources if each.get("readOnly")} == read_only


def test_a_pod_gets_the_vendors_devices(tmp_path: Path) -> None:
    tree = tree_with(tmp_path, PLAIN)
    vendor = (tree.training / "acme/vendor.py").read_text()
    tree.write("acme/vendor.py", f'{vendor}\nKUBERNETES_RESOURCE = "acme.com/chip"\n')
    _, job, *_ = manifests_of(tree)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"acme.com/chip": "1"}
    assert "podAntiAffinity" in job["spec"]["template"]["spec"]["affinity"]
    tree.write("acme/vendor.py", f'{vendor}\nKUBERNETES_RESOURCE = "chip"\n')
    (problem,) = tree.problems()[1]
    assert "cannot be an extended resource of Kubernetes" in problem.message


def test_vendors_name_what_their_plug_ins_offer() -> None:
    problems = Problems()
    found = {name: read_vendor(name, TRAINING, "", "", problems) for name in find_vendors(TRAINING)}
    named = {name: vendor.kubernetes_resource for name, vendor in found.items() if vendor}
    assert named["nvidia"] == "nvidia.com/gpu" and named["ascend"] == "huawei.com/Ascend910"
    assert {name for name, resource in named.items() if not resource} == {"cpu", "intel", "iluvatar"}


@pytest.mark.parametrize(
    ("cluster", "test", "said"),
    [
        (PLAIN, "", "would start containers, and the hosts are pods"),
        ("HOSTS = kubernetes()\n", 'RUNTIME = "process"\n', "pods pull their image from a registry"),
        ('HOSTS = kubernetes(image="a", namspace="b")\n', 'RUNTIME = "process"\n', "is no key of this dict"),
        ('HOSTS = kubernetes(image="--privileged")\n', 'RUNTIME = "process"\n', "is no image"),
        ('HOSTS = kubernetes(image="a", namespace="Bench;")\n', 'RUNTIME = "process"\n', "cannot be the name"),
        ('HOSTS = kubernetes(image="a", user=0)\n', 'RUNTIME = "process"\n', "is out of range"),
        ('HOSTS = kubernetes(image="a", claims={"data": "x"})\n', 'RUNTIME = "process"\n', "is relative"),
        (f'{PLAIN}SPARE_HOSTS = ["n9"]\n', 'RUNTIME = "process"\n', "those of a run come from Kubernetes"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_before_anything_is_asked(
    tmp_path: Path, cluster: str, test: str, said: str
) -> None:
    _, problems = tree_with(tmp_path, cluster, test).problems()
    assert any(said in each.message for each in problems), problems
    assert all(each.remedy for each in problems)


def test_names_and_labels_are_what_kubernetes_takes() -> None:
    assert label_value("bert:pytorch_1.8:A100:2:8:1") == "bert-pytorch-1-8-a100-2-8-1"
    long = [label_value(f"{'a-' * 60}{number}") for number in range(2)]
    assert all(len(each) <= 40 and not each.startswith("-") for each in long) and long[0] != long[1]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def ask(tree: Tree, *words: str) -> tuple[int, str]:
        monkeypatch.setattr(options, "TRAINING_DIR", tree.training)
        code = verbs.main(["kubernetes", "--config", str(tree.config), *words])
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return ask


def test_the_verb_prints_what_kubectl_reads(tmp_path: Path, say: Any) -> None:
    tree = tree_with(tmp_path, PLAIN)
    code, printed = say(tree)
    assert code == 0 and [each["kind"] for each in yaml.safe_load_all(printed)] == ["Service", "Job"]
    code, printed = say(tree, "--controller", "registry.local/controller:1", "--results", "results")
    assert code == 0 and list(yaml.safe_load_all(printed))[2:] == manifests_of(tree)[2:]
    assert "&id" not in printed and "test_conf.py: |" in printed


def test_the_verb_refuses_what_could_not_work(tmp_path: Path, say: Any) -> None:
    tree = tree_with(tmp_path, PLAIN)
    assert "would go with its pod" in say(tree, "--controller", "c:1")[1]
    assert "would wait in vain" in say(tree, "--apply")[1]
    assert "no registry is named" in say(tree, "--push")[1]
    tree.configure(cluster_conf='HOSTS = ["node1", "node2"]\n')
    code, printed = say(tree)
    assert code == 2 and "do not come from Kubernetes" in printed


def test_no_secret_goes_into_manifests(tmp_path: Path) -> None:
    secret = 'RUNTIME = "process"\nPIP_SOURCE = "https://user:hunter22@mirror.example.org/simple"\n'
    tree = tree_with(tmp_path, PLAIN, secret)
    with pytest.raises(FlagPerfError, match="holds what is secret"):
        manifests_of(tree)


def test_a_pod_without_a_controller_ends_by_itself(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    script = HOLD.replace("sleep 10", "sleep 0.1")
    ended = subprocess.run(
        ["sh", "-c", script, str(alive), "1", "0"], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (0, "no controller for 1 s\n")
    alive = tmp_path / "held"
    with subprocess.Popen(["sh", "-c", script, str(alive), "1", "3600"]) as held:
        while not alive.exists():
            time.sleep(0.01)
        os.utime(alive, (time.time() + 60, time.time() + 60))
        held.send_signal(signal.SIGTERM)  # as the kubelet ends it: at once, and not after its patience
        assert held.wait(timeout=30) == 0


def test_a_pod_that_is_taken_away_stays_until_its_controller_lets_it_go(tmp_path: Path) -> None:
    """It is deleted within a second else, and why it was is seen by nobody."""
    alive = tmp_path / "alive"
    script = HOLD.replace("sleep 10", "sleep 0.1").replace("sleep 1;", "sleep 0.1; echo still here;")
    with subprocess.Popen(
        ["sh", "-c", script, str(alive), "3600", "3600"], stdout=subprocess.PIPE, text=True
    ) as held:
        while not alive.exists() or alive.stat().st_mtime < time.time() + 60:  # it is made, and then dated
            time.sleep(0.01)
        alive.touch()
        held.send_signal(signal.SIGTERM)
        assert held.stdout and held.stdout.readline() == "still here\n"
        alive.unlink()
        assert held.wait(timeout=30) == 0
