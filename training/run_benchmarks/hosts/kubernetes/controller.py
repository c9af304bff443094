"""`run.py` itself as a Job in the cluster: what it may do there, what it reads, where its results go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from run_benchmarks.hosts.kubernetes.manifests import (
    KINDS,
    LABEL_JOB,
    RESTRICTED,
    Manifest,
    made,
    secure_pod,
)

CONFIG, RESULTS = "/flagperf/config", "/flagperf/results"
TRAINING = "/flagperf/training"  # in the controller's image
# So long it may take to save the logs of a round that is ended, and then its pod is kept to be read.
GRACE_S, KEPT_S = 300, 86_400
API_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Controller:
    """The controller of the job `workers`.

    image: with FlagPerf in TRAINING, its requirements and kubectl. claim: a PersistentVolumeClaim that takes the
    results. files: name -> text of the two configuration files. case: the one that is run.
    """

    workers: str
    case: str
    image: str
    claim: str
    user: int
    files: Mapping[str, str]

    @property
    def name(self) -> str:
        """Of all its objects."""
        return f"{self.workers}-controller"

    def manifests(self) -> list[Manifest]:
        """All that it needs, but for the workers and the claim."""
        labels, name = {LABEL_JOB: self.workers}, self.name
        account = {"kind": "ServiceAccount", "name": name}
        role = {"apiGroup": API_RBAC, "kind": "Role", "name": name}
        job = {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": KEPT_S,
            "template": {"metadata": {"labels": {"flagperf.role": "controller"}}, "spec": self._pod()},
        }
        return [
            made("v1", "ServiceAccount", name, labels, automountServiceAccountToken=False),
            made(f"{API_RBAC}/v1", "Role", name, labels, rules=self._rules()),
            made(f"{API_RBAC}/v1", "RoleBinding", name, labels, subjects=[account], roleRef=role),
            made("v1", "Secret", name, labels, stringData=dict(self.files)),
            made("batch/v1", "Job", name, labels, spec=job),
        ]

    def _rules(self) -> list[Manifest]:
        """See the namespace's pods and events, run commands in pods, see and delete the workers: nothing is made."""
        own = {"resourceNames": [self.workers], "verbs": ["get", "list", "watch", "delete"]}
        groups = {"jobs": "batch", "services": ""}
        return [
            {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list"]},
            # by WebSockets it is asked for `get`, and since Kubernetes 1.35 for `create` too
            {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get", "create"]},
            *({"apiGroups": [groups[kind]], "resources": [kind], **own} for kind in KINDS),
        ]

    def _pod(self) -> Manifest:
        arguments = ["--config", CONFIG, "--log-path", RESULTS, "--cases", self.case]
        container = {
            "name": "controller",
            "image": self.image,
            "command": ["python3", "run_benchmarks/run.py", *arguments],
            "workingDir": TRAINING,
            "env": [{"name": "HOME", "value": "/tmp"}],  # noqa: S108 - the pod's own
            "securityContext": RESTRICTED,
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
            "volumeMounts": [
                {"name": "config", "mountPath": CONFIG, "readOnly": True},
                {"name": "results", "mountPath": RESULTS},
            ],
        }
        return {
            "restartPolicy": "Never",
            "serviceAccountName": self.name,
            "automountServiceAccountToken": True,
            "terminationGracePeriodSeconds": GRACE_S,
            "securityContext": secure_pod(self.user),
            "containers": [container],
            "volumes": [
                {"name": "config", "secret": {"secretName": self.name}},
                {"name": "results", "persistentVolumeClaim": {"claimName": self.claim}},
            ],
        }
