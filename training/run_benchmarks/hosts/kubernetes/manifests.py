"""What a case is in Kubernetes: worker pods by an Indexed Job, found by each other through a headless service.

No pod is privileged, is root, has a token of the API, or sees anything of its node's: they pass the Pod Security
Standard `restricted`. A pod that is lost is not replaced: a new one knows nothing of the round.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import yaml

from run_benchmarks.plan.kubernetes import KubernetesSettings
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.transports.kubectl import CONTAINER

Manifest = dict[str, Any]
KINDS = ("jobs", "services")  # of what is made for a case
LABEL_CASE, LABEL_JOB = "flagperf.case", "flagperf.job"
ALIVE = "/tmp/flagperf-alive"  # noqa: S108 - in a pod, where all is the one user's
# Beside the deadline of a round: for its code, data, logs.
RESERVE_S = 3600
PODS_KEPT_S = 600  # after their end, for who wants to look at them
LOOK_S, PROBE_S = 10, 2
GRACE_S, LINGER_S = 30, 20
MOST_FAILURES = 2**31 - 1  # as many as the API takes
# $0: a file that the controller touches; $1: seconds. Where no controller has touched it for so long, the pod ends. $2:
# so many seconds more at first, in which other pods of the job may be pending. A pod that is asked to end while a
# controller holds it lingers: it would be gone before anybody has seen why, and its logs with it.
HOLD = (
    'age() { echo $(($(date +%s) - $(stat -c %Y "$0"))); }; '
    f'linger() {{ for _ in $(seq {LINGER_S}); do [ -e "$0" ] && [ "$(age)" -ge 0 ] || break; '
    "sleep 1; done; exit 0; }; "
    'trap linger TERM; touch -d "@$(($(date +%s) + $2))" "$0"; '
    'while [ -e "$0" ] && [ "$(age)" -lt "$1" ]; '
    f'do sleep {LOOK_S} & wait $!; done; [ ! -e "$0" ] || echo "no controller for $1 s"'
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
# Units of container engines' sizes -> those of Kubernetes.
_UNITS = {"b": "", "k": "Ki", "m": "Mi", "g": "Gi", "": ""}
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}


@dataclass(frozen=True)
class Workers:
    """The service and the job of one case.

    name: of both; a DNS label. labels: by which they are found. shm_size: of each pod's /dev/shm, as engines write it.
    written: folders in which a run writes. rounds: so many of the case run in its pods.
    """

    settings: KubernetesSettings
    case: CasePlan
    image: str
    shm_size: str
    name: str
    labels: Mapping[str, str]
    written: Sequence[str] = ()
    rounds: int = 1

    def manifests(self, avoided: Collection[str] = ()) -> list[Manifest]:
        """Both of them; pods come to a node that is `avoided` only where no other takes them."""
        # known before a pod is ready: each waits until it finds the first
        service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {LABEL_JOB: self.name}}
        labels, count = self._labels, self.case.settings.nnodes
        job = {
            "completions": count,
            "parallelism": count,
            "completionMode": "Indexed",
            # at a pod more that is lost the job deletes all of them: a search goes on without its nodes, whatever
            # becomes of the pods in their place, each of which is made later than the one before
            "backoffLimit": MOST_FAILURES if self.case.roles else 0,
            "activeDeadlineSeconds": round(
                self.settings.pending_limit + self.rounds * (self.case.deadline_s + RESERVE_S)
            ),
            "ttlSecondsAfterFinished": PODS_KEPT_S,
            "template": {
                "metadata": _without_empty(
                    {"labels": labels, "annotations": dict(self.settings.annotations)}
                ),
                "spec": self._pod(avoided),
            },
        }
        return [
            made("v1", "Service", self.name, labels, spec=service),
            made("batch/v1", "Job", self.name, labels, spec=job),
        ]

    @property
    def _labels(self) -> dict[str, str]:
        of_case = {LABEL_CASE: label_value(self.case.settings.name), LABEL_JOB: self.name}
        return {**self.settings.labels, **self.labels, **of_case}

    def _pod(self, avoided: Collection[str]) -> Manifest:
        settings = self.settings
        return _without_empty(
            {
                "restartPolicy": "Never",
                "subdomain": self.name,
                "automountServiceAccountToken": False,
                "enableServiceLinks": False,
                "terminationGracePeriodSeconds": GRACE_S,
                "securityContext": secure_pod(settings.user),
                "containers": [self._container()],
                "volumes": [_memory(self.shm_size), *self._claims()],
                "affinity": _affinity(settings, self.name, avoided),
                "nodeSelector": dict(settings.node_selector),
                "tolerations": [{"key": key, "operator": "Exists"} for key in settings.tolerations],
                "imagePullSecrets": [{"name": each} for each in settings.pull_secrets],
                "priorityClassName": settings.priority_class,
                "runtimeClassName": settings.runtime_class,
            }
        )

    def _claims(self) -> Iterator[Manifest]:
        """The claims' volumes; that of the data is read-only, as some drivers demand, unless a run writes there."""
        claims, data = self.settings.claims, self.case.settings.data_dir_host
        read_only = {_folder_of(data, claims)} - {_folder_of(path, claims) for path in self.written if path}
        for number, (folder, claim) in enumerate(claims.items()):
            source = {"claimName": claim, **({"readOnly": True} if folder in read_only else {})}
            yield {"name": f"claim-{number}", "persistentVolumeClaim": source}

    def _container(self) -> Manifest:
        settings, claims = self.settings, self.settings.claims
        limits = dict(settings.resources)
        if self.case.vendor.kubernetes_resource:
            limits.setdefault(self.case.vendor.kubernetes_resource, str(self.case.settings.nproc))
        # an image may know no user of this number, and Python asks for a name and a home
        env = {"HOME": "/tmp", "USER": "flagperf", "LOGNAME": "flagperf"}  # noqa: S108 - the pod's own
        mounts = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108 - Linux's own
        mounts += [{"name": f"claim-{number}", "mountPath": path} for number, path in enumerate(claims)]
        # a peer's name is known when the round begins, and not a moment later
        probe = {"exec": {"command": ["getent", "hosts", f"{self.name}-0.{self.name}"]}}
        patience_s = round(settings.pending_limit)
        return _without_empty(
            {
                "name": CONTAINER,
                "image": self.image,
                "command": ["sh", "-c", HOLD, ALIVE, f"{settings.abandoned_after:.0f}", f"{patience_s}"],
                "workingDir": "/",
                "env": [{"name": name, "value": value} for name, value in env.items()],
                "resources": _without_empty({"requests": limits, "limits": limits}),
                "securityContext": RESTRICTED,
                "volumeMounts": mounts,
                "startupProbe": {
                    **probe,
                    "periodSeconds": PROBE_S,
                    "timeoutSeconds": 5,
                    "failureThreshold": patience_s // PROBE_S + 30,
                },
            }
        )


def made(version: str, kind: str, name: str, labels: Mapping[str, str], **content: Any) -> Manifest:
    """An object."""
    metadata = {"name": name, "labels": dict(labels)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}


class _Dumper(yaml.SafeDumper):
    """Writes what stands twice twice, and the lines of a text as lines."""

    def ignore_aliases(self, data: Any) -> bool:
        """What is the same object is no alias: a reader wants to see it."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """A text; of several lines as a block."""
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _Dumper.represent_text)


def as_yaml(manifests: Sequence[Manifest]) -> str:
    """The objects as kubectl reads them."""
    text: str = yaml.dump_all(manifests, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text.rstrip()


def label_value(text: str) -> str:
    """`text` as the value of a label, or a name: a hyphen for what that may not hold; a long one ends with its hash."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if len(plain) <= 40:
        return plain
    return f"{plain[:31].rstrip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def secure_pod(user: int) -> Manifest:
    """The security context of a pod under the standard `restricted`."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "fsGroupChangePolicy": "OnRootMismatch",  # else all files of a claim are touched before a pod starts
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _affinity(settings: KubernetesSettings, name: str, avoided: Collection[str]) -> Manifest:
    """A node for each pod and, where there are others, none that is avoided: else a small cluster would take none."""
    rules: Manifest = {}
    if not settings.share_nodes:
        own = {"labelSelector": {"matchLabels": {LABEL_JOB: name}}, "topologyKey": "kubernetes.io/hostname"}
        rules["podAntiAffinity"] = {_REQUIRED: [own]}
    if avoided:
        fields = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in sorted(avoided)]
        rules["nodeAffinity"] = {_PREFERRED: [{"weight": 100, "preference": {"matchFields": fields}}]}
    return rules


def _folder_of(path: str, claims: Collection[str]) -> str:
    """The folder of the claim in which `path` lies, the innermost; empty where it lies in none."""
    return max((each for each in claims if PurePosixPath(path).is_relative_to(each)), key=len, default="")


def _memory(shm_size: str) -> Manifest:
    match = re.fullmatch(r"(\d+)([bkmgBKMG]?)", shm_size)
    assert match  # noqa: S101 - the setting's type allows nothing else
    size = f"{int(match[1])}{_UNITS[match[2].lower()]}"
    return {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}}


def _without_empty(content: Manifest) -> Manifest:
    return {name: value for name, value in content.items() if value not in ("", [], {}, ())}
