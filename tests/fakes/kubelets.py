"""FAKE: what runs the pods of tests.fakes.kubernetes_api: this machine itself, or containers of its engine."""

from __future__ import annotations

import json
import secrets
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

Object = dict[str, Any]
RUNNING: Object = {
    "phase": "Running",
    "startTime": "2026-11-27T23:00:00Z",
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [{"state": {"running": {}}}],
}
START_S = 60.0


def running() -> Object:
    """The status of a pod that runs."""
    return dict(json.loads(json.dumps(RUNNING)))


def pending(reason: str, message: str) -> Object:
    """The status of a pod whose container waits."""
    waiting = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "conditions": [], "containerStatuses": [{"state": waiting}]}


def unschedulable(message: str) -> Object:
    """The status of a pod that no node takes."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


class Processes:
    """Pods are this machine: commands run here as they are. `status`: what the next pods have."""

    def __init__(self, status: Object | None = None) -> None:
        self.status = status or RUNNING

    def start(self, pod: Object) -> Object:
        return dict(json.loads(json.dumps(self.status)))

    def exec_argv(self, pod: Object) -> Sequence[str]:
        return ()

    def stop(self, pod: Object) -> None:
        """What ran there ends with the test."""


class Containers:
    """Pods are containers of this machine's engine, as tight as their security contexts say.

    claims: PersistentVolumeClaim -> the folder that it is. network: of the engine; it answers for the service's names.
    """

    def __init__(self, network: str, claims: Mapping[str, str]) -> None:
        self.network, self.claims = network, claims

    def start(self, pod: Object) -> Object:
        name, spec = pod["metadata"]["name"], pod["spec"]
        (container,) = spec["containers"]
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        argv = ["docker", "run", "--detach", "--rm", "--name", name, "--network", self.network]
        argv += ["--hostname", spec["hostname"], "--network-alias", f"{spec['hostname']}.{spec['subdomain']}"]
        argv += ["--user", f"{spec['securityContext']['runAsUser']}:{spec['securityContext']['runAsGroup']}"]
        argv += [f"--cap-drop={each}" for each in container["securityContext"]["capabilities"]["drop"]]
        argv += ["--security-opt=no-new-privileges", f"--workdir={container['workingDir']}"]
        argv += [f"--env={each['name']}={each['value']}" for each in container["env"]]
        for mount in container["volumeMounts"]:
            volume = volumes[mount["name"]]
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]
                mode = "ro" if claim.get("readOnly") else "rw"
                argv += ["--volume", f"{self.claims[claim['claimName']]}:{mount['mountPath']}:{mode}"]
            else:
                argv += ["--shm-size", volume["emptyDir"]["sizeLimit"].removesuffix("i").lower()]
        argv += ["--entrypoint", container["command"][0], container["image"], *container["command"][1:]]
        started = subprocess.run(argv, capture_output=True, text=True)
        if started.returncode:
            return pending("CreateContainerError", started.stderr)
        probe = container["startupProbe"]["exec"]["command"]
        until = time.monotonic() + START_S
        while subprocess.run([*self.exec_argv(pod), *probe], capture_output=True).returncode:
            if time.monotonic() > until:
                return {"phase": "Failed", "reason": "StartupProbe", "message": f"{probe} fails"}
            time.sleep(0.1)
        return running()

    def exec_argv(self, pod: Object) -> Sequence[str]:
        return ("docker", "exec", "--interactive", pod["metadata"]["name"])

    def stop(self, pod: Object) -> None:
        subprocess.run(["docker", "rm", "--force", pod["metadata"]["name"]], capture_output=True)


@contextmanager
def pod_network() -> Iterator[str]:
    """A network of the engine's own, in which containers find each other by name."""
    name = f"flagperf-test-{secrets.token_hex(4)}"
    subprocess.run(["docker", "network", "create", name], check=True, capture_output=True)
    try:
        yield name
    finally:
        subprocess.run(["docker", "network", "rm", name], capture_output=True)
