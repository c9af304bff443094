"""The check that a host's engine can hand a Dockerfile the secrets that it mounts."""

from __future__ import annotations

from run_benchmarks.images.layers import mounted_secrets
from run_benchmarks.plan.handover import SECRETS_FOLDER
from run_benchmarks.plan.records import Plan
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.runtimes.engine import engine_of
from run_benchmarks.stages.checks import QUICK_S, HostUse
from utils.errors import FlagPerfError


async def build_secrets(plan: Plan, runtime: Runtime, use: HostUse) -> str | None:
    """Where an image may be built that mounts secrets, the engine's builder knows them."""
    every = plan.run.image_distribution == "build"
    cases = [place.case for place in use.places if plan.run.uses_engine and (every or place.rank == 0)]
    names = sorted({name for case in cases for name in mounted_secrets(plan, case)})
    if not names:
        return None
    done = await use.transport.run(engine_of(plan.run.container_engine).takes_secrets(), timeout=QUICK_S)
    if not done.ok:
        raise FlagPerfError(
            f"{plan.run.container_engine} build has no --secret here, and a Dockerfile mounts {', '.join(names)}",
            remedy="install Docker's buildx there (its package is docker-buildx or docker-buildx-plugin), or use "
            f"the secret in <framework>_install.sh, which reads it from {SECRETS_FOLDER}/NAME with every engine",
        )
    return ", ".join(names)
