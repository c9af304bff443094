"""`run.py kubernetes`: what a case is in Kubernetes, as manifests to look at, to keep, or to apply."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import put
from run_benchmarks.verbs import options
from utils.errors import FlagPerfError

if TYPE_CHECKING:
    from run_benchmarks.plan.kubernetes import KubernetesSettings
    from run_benchmarks.plan.records import CasePlan, Plan

NAME = "kubernetes"
HELP = "print what a case is in Kubernetes as manifests, or apply them; with HOSTS = kubernetes(...)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which case, with which controller, and what is done with it."""
    options.add_config(parser)
    options.add_cases(parser)
    parser.add_argument(
        "--controller",
        metavar="IMAGE",
        help="the controller's image: run.py runs the case as a Job in the cluster, too",
    )
    parser.add_argument(
        "--results", metavar="CLAIM", help="the PersistentVolumeClaim that takes the controller's results"
    )
    parser.add_argument(
        "--apply", action="store_true", help="apply them by kubectl, in the place of printing"
    )
    parser.add_argument(
        "--push",
        action="store_true",
        help="build the case's image here and push it to IMAGE_REGISTRY, no more",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print, apply or push."""
    from run_benchmarks.transports.kubectl.client import Kubectl

    plan = options.plan_of(arguments)
    settings = plan.cluster.kubernetes
    if settings is None:
        remedy = "write HOSTS = kubernetes(...) into cluster_conf.py: docs/kubernetes.md"
        raise FlagPerfError("its hosts do not come from Kubernetes", where="HOSTS", remedy=remedy)
    case = _only(plan)
    if arguments.push:
        from run_benchmarks.hosts.kubernetes.image import push_image
        from run_benchmarks.run_log import log_to_terminal

        log_to_terminal(plan.run.log_level)
        put(asyncio.run(push_image(plan, case)))
        return ExitCode.SUCCESS
    manifests = _manifests(plan, settings, case, arguments)
    if arguments.apply:
        asyncio.run(Kubectl(settings.namespace, settings.context).apply(manifests))
        put(_what_next(case))
        return ExitCode.SUCCESS
    from run_benchmarks.hosts.kubernetes.manifests import as_yaml

    put(as_yaml(manifests))
    return ExitCode.SUCCESS


def _only(plan: Plan) -> CasePlan:
    if len(plan.cases) > 1:
        names = ", ".join(case.settings.name for case in plan.cases)
        raise FlagPerfError(f"there is more than one case: {names}", remedy="name one with --cases")
    return plan.cases[0]


def _manifests(
    plan: Plan, settings: KubernetesSettings, case: CasePlan, arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """The workers and, where its image is given, the controller that takes them."""
    from run_benchmarks.hosts.kubernetes.case import controller_of, name_of, workers_of

    workers = workers_of(plan, settings, case, name_of(case)).manifests()
    if not arguments.controller:
        if arguments.apply:
            remedy = "run `run.py` itself, which makes the pods, or name the image of one with --controller"
            raise FlagPerfError("workers without a controller would wait in vain", remedy=remedy)
        return workers
    if not arguments.results:
        remedy = "name a PersistentVolumeClaim with --results: docs/kubernetes.md has one"
        raise FlagPerfError("the controller's results would go with its pod", remedy=remedy)
    image, claim = arguments.controller, arguments.results
    controller = controller_of(plan, settings, case, arguments.config, image, claim)
    return [*workers, *controller.manifests()]


def _what_next(case: CasePlan) -> str:
    from run_benchmarks.hosts.kubernetes.case import name_of
    from run_benchmarks.hosts.kubernetes.manifests import LABEL_JOB

    name = name_of(case)
    return (
        f"applied; its log: kubectl logs --follow job/{name}-controller\n"
        f"to remove all of it: kubectl delete job,service,role,rolebinding,serviceaccount,secret -l {LABEL_JOB}={name}"
    )
