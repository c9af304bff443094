"""What a case of a plan is in Kubernetes: its workers, in its image."""

from __future__ import annotations

from run_benchmarks.hosts.kubernetes.manifests import Workers
from run_benchmarks.images.layers import plan_image
from run_benchmarks.names import LABEL_RUN
from run_benchmarks.plan.kubernetes import KubernetesSettings
from run_benchmarks.plan.records import CasePlan, Plan


def image_of(plan: Plan, settings: KubernetesSettings, case: CasePlan) -> str:
    """The image that the case's pods run: the one that the settings name, or the case's own in the registry."""
    return settings.image or plan_image(plan, case).tag


def workers_of(plan: Plan, settings: KubernetesSettings, case: CasePlan, name: str, run: str = "") -> Workers:
    """The workers of a case under a name; `run`: the uid that they are labelled with, if that is known."""
    labels = {LABEL_RUN: run} if run else {}
    return Workers(settings, case, image_of(plan, settings, case), plan.run.shm_size, name, labels)
