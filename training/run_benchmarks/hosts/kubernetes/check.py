"""Before anything is launched: does the cluster answer, and would it make the pods that a plan asks for?"""

from __future__ import annotations

import asyncio

from run_benchmarks.hosts.kubernetes.case import workers_of
from run_benchmarks.plan.kubernetes import KubernetesSettings
from run_benchmarks.plan.records import Plan
from run_benchmarks.transports.kubectl.client import Kubectl

NAME = "flagperf-test"


async def check_kubernetes(plan: Plan, settings: KubernetesSettings) -> None:
    """Let the API server look at the manifests of every case, of which it makes nothing.

    Raises:
        CommandError: it refuses them, or does not answer.
    """
    kubectl = Kubectl(settings.namespace, settings.context)
    if settings.job:
        await kubectl.ask("get", "job", settings.job, "--output=name")
        return
    await asyncio.gather(
        *(
            kubectl.apply(workers_of(plan, settings, case, NAME).manifests(), "--dry-run=server")
            for case in plan.cases
        )
    )
