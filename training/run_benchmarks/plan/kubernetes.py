"""`HOSTS = kubernetes(...)` of `cluster_conf.py`: the pods that a case's hosts are."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.dataclasses import dataclass as model

from run_benchmarks.plan import values
from run_benchmarks.plan.problems import UnfitError
from run_benchmarks.plan.reader import Reader, fields_of

KEY = "kubernetes"  # of the dict that `kubernetes(...)` is
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_QUALIFIED = r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?"


def kubernetes(**options: Any) -> dict[str, dict[str, Any]]:
    """What `cluster_conf.py` calls: plain data, which is checked later."""
    return {KEY: options}


def _named(pattern: str, what: str, remedy: str = "write it as `kubectl get` shows it") -> AfterValidator:
    def check(text: str) -> str:
        if text and not re.fullmatch(pattern, text, re.ASCII):
            raise UnfitError(f"cannot be {what}", remedy)
        return text

    return AfterValidator(check)


def _image(text: str) -> str:
    if text and (text.startswith("-") or not text.isascii() or not text.isprintable() or " " in text):
        raise UnfitError("is no image", 'write it with its registry, e.g. "registry.local:5000/flagperf:1"')
    return text


Name = Annotated[values.Text, _named(_LABEL, "the name of an object in Kubernetes")]
Key = Annotated[values.Text, _named(_QUALIFIED, "a name that Kubernetes takes for this")]
# As a device plug-in offers its devices; empty for none.
ResourceName = Annotated[
    values.Text,
    _named(
        r"[a-z0-9.-]{1,253}/[A-Za-z0-9][\w.-]{0,62}",
        "an extended resource of Kubernetes",
        'write it as the plug-in names it, e.g. "nvidia.com/gpu"',
    ),
]
# Tolerated, requested, selected: as pods have them. A number may be written without quotation marks.
Amount = Annotated[values.Text, BeforeValidator(lambda value: str(value) if type(value) is int else value)]


@model(frozen=True)
class KubernetesSettings:
    """The pods that are asked for, one a node of the case.

    namespace, context: empty for those of the user's kubeconfig. image: empty for the case's own, by its tag in
    IMAGE_REGISTRY. resources: what a pod gets beside the vendor's devices. claims: folder in the pod -> the
    PersistentVolumeClaim that is mounted there. user: whose number the processes have. tolerations: keys of taints.
    share_nodes: several pods may be on one node, as for a trial. pending_limit: seconds that pods may wait for.
    abandoned_after: seconds without a controller after which the pods end; so long `run.py resume` may take them up.
    job: an Indexed Job that is there already, and whose pods are taken; the run deletes it at its end.
    """

    namespace: Name = ""
    context: values.Text = ""
    image: Annotated[values.Text, AfterValidator(_image)] = ""
    resources: dict[Key, Amount] = field(default_factory=dict)
    claims: dict[values.AbsolutePath, Name] = field(default_factory=dict)
    user: Annotated[values.Whole, Field(le=2**31 - 1)] = 1000
    node_selector: dict[Key, Amount] = field(default_factory=dict)
    tolerations: tuple[Key, ...] = ()
    labels: dict[Key, Amount] = field(default_factory=dict)
    annotations: dict[Key, values.Text] = field(default_factory=dict)
    pull_secrets: tuple[Name, ...] = ()
    priority_class: Name = ""
    runtime_class: Name = ""
    share_nodes: values.Flag = False
    pending_limit: values.Seconds = 3600.0
    abandoned_after: Annotated[values.Positive, Field(ge=300, le=86_400)] = 1800.0
    job: Name = ""


# In the settings of a cluster. HOSTS as the file has it is read by `read_kubernetes`.
HostsOfKubernetes = Annotated[
    KubernetesSettings | None,
    BeforeValidator(lambda hosts: hosts if isinstance(hosts, KubernetesSettings) else None),
]


def read_kubernetes(reader: Reader) -> KubernetesSettings | None:
    """What HOSTS asks of Kubernetes; None where it does not. What is wrong is noted."""
    written = reader.file.values.get("HOSTS")
    if not isinstance(written, dict) or not isinstance(section := written.get(KEY), dict):
        return None
    reader.report_unknown_keys(("HOSTS", KEY), section, list(fields_of(KubernetesSettings)))
    return reader.read(KubernetesSettings, section, ("HOSTS", KEY)) or KubernetesSettings()


def check_run(settings: KubernetesSettings, uses_images: bool, registry: str, reader: Reader) -> None:
    """Note what in `test_conf.py` (its reader) does not go with pods.

    Args:
        uses_images: whether units are containers. registry: IMAGE_REGISTRY.
    """
    if uses_images:
        message = "would start containers, and the hosts are pods, which are containers themselves"
        reader.problem("RUNTIME", message, 'set RUNTIME = "process"')
    if not (settings.image or settings.job or registry):
        remedy = 'set it, e.g. "registry.example.com/team", or name an image in HOSTS = kubernetes(image=...)'
        reader.problem("IMAGE_REGISTRY", "is not set, and pods pull their image from a registry", remedy)
