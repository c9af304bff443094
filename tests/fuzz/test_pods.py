"""What Kubernetes says of pods: read as it is meant, or refused; never more than is bounded, nor what is no name."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

from run_benchmarks.hosts.base import AllocationError
from run_benchmarks.hosts.kubernetes.allocator import hosts_of, names_of
from run_benchmarks.hosts.kubernetes.ends import ended
from run_benchmarks.reading import object_in, parsed
from run_benchmarks.transports.kubectl.client import Kubectl
from run_benchmarks.transports.kubectl.pods import LONGEST_TEXT, Pods
from tests.fuzz.long_run import holds
from tests.fuzz.test_results import ODD_TEXTS, torn
from utils.errors import FlagPerfError

SAID = ("Running", "Failed", "Evicted", "OOMKilled", "DisruptionTarget", "True", "../x", "node-1")
WORDS = st.sampled_from([*SAID, *SAID, *ODD_TEXTS])


def pods_of(words: list[str]) -> str:
    """A list of one pod, in which these words stand for what the cluster chooses."""
    phase, kind, status, reason, message, node, job = words
    condition = {"type": kind, "status": status, "reason": reason, "message": message}
    container = {
        "state": {"terminated": {"reason": reason, "message": message, "exitCode": 1}},
        "imageID": node,
    }
    pod: dict[str, Any] = {
        "metadata": {"name": "job-0-x", "labels": {"batch.kubernetes.io/job-name": job}, "annotations": {}},
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "conditions": [condition],
            "containerStatuses": [container],
            "message": message,
        },
    }
    return json.dumps({"items": [pod]})


@holds(listed=torn(st.lists(WORDS, min_size=7, max_size=7).map(pods_of)) | st.text())
def test_whatever_is_said_of_pods_is_bounded_and_names_are_names(listed: str) -> None:
    try:
        pods = parsed(Pods, object_in(listed, "Kubernetes"), "Kubernetes").items
    except FlagPerfError:
        return
    for pod in pods:
        assert re.fullmatch("[a-z0-9.-]+", pod.name) and re.fullmatch("[a-z0-9-]*", pod.job)
        assert len(str(pod.waits_for)) < 2 * LONGEST_TEXT
        if pod.end:
            assert len(ended("job", pod.end).message) < 5 * LONGEST_TEXT
    with suppress(AllocationError):  # a name that is too long for a file's
        for host in hosts_of(names_of(pods), pods, "job", Kubectl()):
            assert re.fullmatch("[a-z0-9.-]+", host.name)
