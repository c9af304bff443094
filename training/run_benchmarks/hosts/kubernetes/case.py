"""What a case of a plan is in Kubernetes: its workers, in its image, and the controller that is to run it there."""

from __future__ import annotations

from pathlib import Path

from run_benchmarks.hosts.kubernetes.controller import Controller
from run_benchmarks.hosts.kubernetes.manifests import Workers, label_value
from run_benchmarks.images.layers import plan_image
from run_benchmarks.names import LABEL_RUN
from run_benchmarks.plan.kubernetes import KubernetesSettings
from run_benchmarks.plan.records import CasePlan, Plan
from utils.errors import FlagPerfError

CLUSTER_CONF, TEST_CONF = "cluster_conf.py", "test_conf.py"


def image_of(plan: Plan, settings: KubernetesSettings, case: CasePlan) -> str:
    """The image that the case's pods run: the one that the settings name, or the case's own in the registry."""
    return settings.image or plan_image(plan, case).tag


def workers_of(plan: Plan, settings: KubernetesSettings, case: CasePlan, name: str, run: str = "") -> Workers:
    """The workers of a round of a case under a name or, where no run has made them (its uid), of all its rounds."""
    labels, rounds = ({LABEL_RUN: run}, 1) if run else ({}, case.settings.repeat)
    written, shm_size = (plan.run.flagperf_path_host, plan.run.checkpoint_path), plan.run.shm_size
    return Workers(settings, case, image_of(plan, settings, case), shm_size, name, labels, written, rounds)


def name_of(case: CasePlan) -> str:
    """The name of a case's job where a user has it made, and no run."""
    return f"flagperf-{label_value(case.settings.name)}"


def controller_of(
    plan: Plan, settings: KubernetesSettings, case: CasePlan, config_dir: Path, image: str, claim: str
) -> Controller:
    """The controller of a case, which takes the pods of its job.

    Raises:
        FlagPerfError: its configuration cannot go there as it is.
    """
    text = (config_dir / TEST_CONF).read_text(encoding="utf-8")
    if plan.secrets.hide(text) != text:
        message = "holds what is secret, and would stand in the manifests"
        remedy = (
            "take it out: a task reads it from a file of a claim, a build from this machine's environment"
        )
        raise FlagPerfError(message, where=str(config_dir / TEST_CONF), remedy=remedy)
    if plan.run.machine.settings:
        remedy = "write them into test_conf.py, or move machine_conf.py away"
        raise FlagPerfError(
            "machine_conf.py of this machine has settings that do not go there", remedy=remedy
        )
    cluster, name = plan.cluster, name_of(case)
    files = {
        CLUSTER_CONF: f'HOSTS = kubernetes(job="{name}", pending_limit={settings.pending_limit!r})\n'
        f"MASTER_PORT = {cluster.master_port}\nHOST_LOST_AFTER = {cluster.host_lost_after_s!r}\n",
        TEST_CONF: text,
    }
    return Controller(name, case.settings.name, image, claim, settings.user, files)
