"""Which images a case needs: up to five layers, each named by a hash of everything that goes into it.

1. the vendor's `docker_image/<framework>/Dockerfile`, built with its folder as context;
2. its `<framework>_install.sh`, run in a container of (1) and committed;
3. what the harness's own monitors need, installed in a container of (2) and committed: so an image that a vendor
   brings need not know of it;
4. the pip requirements of case and vendor, installed in a container of (3) and committed;
5. the vendor's extension for the case, `csrc/setup.py`, built in a container of (4) and committed.

Layers 2 to 5 run in a container and not in `docker build`, because the user's pip settings (index,
credentials, private CA, a folder of wheels) can be mounted there without ending up in the image. So are the
build arguments that are secret, for layer 2; a Dockerfile has to mount them itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from run_benchmarks.plan.handover import PROXIES, dockerfile_of
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.stages.tree import pack

# 128 bits: an image is taken for what it was made from by this name alone.
TAG_DIGITS = 32
MONITOR_REQUIREMENTS = "utils/monitors/requirements.txt"


@dataclass(frozen=True)
class Layer:
    """One image to make.

    kind: `dockerfile`, `install`, `monitors`, `requirements` or `extension`.
    files: relative to the training folder: the Dockerfile's folder, the script, the requirement files, or the
    extension's folder and what is sourced before it is built, if there is such a file.
    """

    kind: str
    tag: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class ImagePlan:
    """The layers of a case's image, in order; `tag` names the last, in which the case runs.

    build_args: those that anybody may see; they stand in the image's history. secrets: the others.
    mounted: those of them that the Dockerfile mounts. hide: what takes the run's secrets out of a text.
    """

    layers: tuple[Layer, ...]
    build_args: tuple[tuple[str, str], ...]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounted: tuple[str, ...] = ()
    hide: Callable[[str], str] = field(default=str, compare=False, repr=False)

    @property
    def proxies(self) -> tuple[str, ...]:
        """Those of the secrets that every engine takes as arguments and leaves out of an image's history."""
        return tuple(sorted(self.secrets.keys() & PROXIES))

    @property
    def tag(self) -> str:
        """The image that the case runs in."""
        return self.layers[-1].tag


def plan_image(plan: Plan, case: CasePlan) -> ImagePlan:
    """The image that `case` runs in."""
    files = case.files
    open_args, secrets = plan.secrets.split(case.image_build_args)
    build_args = tuple(sorted(open_args.items()))
    # exactly what the hosts get: an editor's hidden files are not part of any image
    digest = hashlib.sha256(pack(plan.training_dir / files.dockerfile_dir))
    digest.update(repr(build_args).encode())
    if (
        secrets
    ):  # their names alone: what they open is no part of the image, and a hash of a short one can be guessed
        digest.update(repr(sorted(secrets)).encode())
    framework = f"{case.vendor.name}-{case.settings.framework}"
    layers = [Layer("dockerfile", _tag(plan, framework, digest), (files.dockerfile_dir,))]
    if files.install_script:
        digest.update(b"install")
        layers.append(Layer("install", _tag(plan, framework, digest), (files.install_script,)))
    _add_requirements(digest, plan.training_dir, (MONITOR_REQUIREMENTS,))
    layers.append(Layer("monitors", _tag(plan, framework, digest), (MONITOR_REQUIREMENTS,)))
    if files.requirements:
        _add_requirements(digest, plan.training_dir, files.requirements)
        tag = _tag(plan, f"{framework}-{case.settings.model}", digest)
        layers.append(Layer("requirements", tag, files.requirements))
    if files.extension_dir:
        sourced = (files.environment_script,) if files.environment_script else ()
        digest.update(b"extension" + pack(plan.training_dir / files.extension_dir))
        _add_requirements(digest, plan.training_dir, sourced)
        tag = _tag(plan, f"{framework}-{case.settings.model}", digest)
        layers.append(Layer("extension", tag, (files.extension_dir, *sourced)))
    return ImagePlan(tuple(layers), build_args, secrets, mounted_secrets(plan, case), plan.secrets.hide)


def mounted_secrets(plan: Plan, case: CasePlan) -> tuple[str, ...]:
    """The secret build arguments that the case's Dockerfile mounts: `RUN --mount=type=secret,id=NAME`."""
    _, secrets = plan.secrets.split(case.image_build_args)
    mounts = re.findall(r"--mount=(\S+)", dockerfile_of(case, plan.training_dir))
    fields = {each for mount in mounts if "type=secret" in mount for each in mount.split(",")}
    return tuple(name for name in sorted(secrets) if f"id={name}" in fields)


def _add_requirements(digest: hashlib._Hash, training_dir: Path, names: Sequence[str]) -> None:
    for name in names:
        digest.update(b"requirements")
        digest.update((training_dir / name).read_bytes())


def _tag(plan: Plan, name: str, digest: hashlib._Hash) -> str:
    repository = re.sub(r"[^a-z0-9._/-]", "-", name.lower())
    registry = plan.run.image_registry.rstrip("/")
    # a registry's own path may end with it
    folder = registry if registry.rpartition("/")[2] == "flagperf" else f"{registry}/flagperf".lstrip("/")
    return f"{folder}/{repository}:{digest.hexdigest()[:TAG_DIGITS]}"
