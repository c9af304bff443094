"""A case's image, from this machine to the registry that the pods pull it from."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from run_benchmarks.images import open_image_store
from run_benchmarks.images.build import BuildSite, build_name
from run_benchmarks.images.layers import plan_image
from run_benchmarks.names import host_paths, new_run_id
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.stages.deploy import deploy_tree
from run_benchmarks.stages.image import ImageStage
from run_benchmarks.stages.tree import tree_of
from run_benchmarks.transports import LOCALHOST
from run_benchmarks.transports.local import LocalTransport
from utils.errors import FlagPerfError


async def push_image(plan: Plan, case: CasePlan) -> str:
    """See that the registry has the case's image: this machine's engine builds and pushes it where it has not.

    Raises:
        FlagPerfError: there is no registry or no engine, or one of them fails.
    """
    if not plan.run.image_registry:
        remedy = 'add IMAGE_REGISTRY = "registry.example.com/team" to test_conf.py'
        raise FlagPerfError("no registry is named that pods could pull an image from", remedy=remedy)
    run, image = replace(plan.run, runtime="docker"), plan_image(plan, case)
    store = open_image_store(run)
    assert store  # noqa: S101 - for mypy: an engine has one
    here, uid = LocalTransport(), new_run_id(datetime.now().astimezone())
    tree = tree_of(plan)
    paths = host_paths(run, uid, tree.digest)
    await deploy_tree(here, tree, paths)
    name = build_name(uid.uid, LOCALHOST, image.tag)
    site = BuildSite(tree=paths.tree, work=paths.work, run_uid=uid.uid, name=name, local=True)
    with tempfile.TemporaryDirectory(prefix="flagperf-image-") as logs:
        stage = ImageStage(
            store, {LOCALHOST: here}, {LOCALHOST: site}, image, run.pip, "registry", Path(logs)
        )
        if (await stage.images())[LOCALHOST]:
            await store.push(here, image.tag, _ignore)
        await stage.run()
    return image.tag


async def _ignore(chunk: bytes) -> None:
    """The stage shows what a push prints; here it is there already."""
