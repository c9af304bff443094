"""The steps that build a layer of a case's image on a host."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from run_benchmarks.images.layers import ImagePlan, Layer
from run_benchmarks.names import LABEL_ROLE, LABEL_RUN
from run_benchmarks.plan.handover import SECRETS_FOLDER
from run_benchmarks.runtimes.base import Mount, Unit
from run_benchmarks.runtimes.engine import Engine
from run_benchmarks.transports.base import WITH_VARIABLES, ByteSink, CommandError, Tail, Transport

BUILD_TIMEOUT_S = 7200.0
TREE_FOLDER = "/flagperf-tree"
# Where install scripts of existing FlagPerf look for what lies beside them: installers, packages.
DOCKER_FOLDER = "/workspace/docker_image"
# $1: an extension's folder, $2: a file to source, or nothing. What is made on the way goes into a copy, for the tree
# is read-only, and some name their sources from the folder that they lie in.
BUILD_EXTENSION = (
    'exec 2>&1; if [ -n "$2" ]; then . "$2"; fi; made=$(mktemp -d) && cp -R "$1/." "$made" && cd "$made" && '
    'EXTENSION_SOURCE_DIR="$made" python3 setup.py install && cd / && rm -rf "$made"'
)
# Both streams in one, in the order in which they were written: that is how a build log is read.
MERGED = ("sh", "-c", 'exec 2>&1; exec "$@"', "sh")
# What a step of a build may do as its container's root, and why; it has no other capability.
BUILD_CAPABILITIES = {
    **dict.fromkeys(
        ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP"), "package managers unpack files of any owner"
    ),
    **dict.fromkeys(
        ("SETUID", "SETGID", "KILL"), "apt downloads as a user of its own, and ends what it started"
    ),
    "SYS_CHROOT": "scripts of packages",
    "AUDIT_WRITE": "useradd in scripts of RPM packages",
}
# What is installed, whatever the image's timestamps: two builds of one Dockerfile never share an image ID.
LIST_SOFTWARE = (
    *("sh", "-c"),
    "python3 -VV; python3 -m pip freeze --all 2>/dev/null; dpkg-query -W 2>/dev/null || rpm -qa | sort",
)
LIST_VARIABLES = ("cat", "/proc/self/environ")
KEPT_OUTPUT_BYTES = 8192  # of a command that fails, for its error


@dataclass(frozen=True)
class BuildSite:
    """Where on a host an image is built.

    tree, work: folders on the host: the deployed training tree, and where FlagPerf may write.
    name: for containers, unique to this run and case.
    local: whether the host is this machine, whose own folders of wheels a build can see.
    """

    tree: str
    work: str
    run_uid: str
    name: str
    local: bool


def layer_argvs(
    engine: Engine,
    site: BuildSite,
    layer: Layer,
    below: Layer | None,
    image: ImagePlan,
    mounts: Sequence[Mount],
) -> list[tuple[str, ...]]:
    """The commands that make one layer on the host."""
    if below is None:
        return [_dockerfile_argv(engine, site, layer, image)]
    # A commit keeps the container's command, entrypoint and labels; the image must not carry those of the
    # build. An entrypoint cannot be taken away again: `env` is one that does nothing.
    # Podman takes one label a change.
    labels = (f"LABEL {name}={value}" for name, value in _labels_of_image(layer).items())
    changes = ('ENTRYPOINT ["env"]', 'CMD ["bash"]', *labels)
    return [
        engine.remove([site.name]),
        engine.run_to_end(_build_unit(site, layer, below, mounts)),
        engine.commit(site.name, layer.tag, changes),
        engine.remove([site.name]),
    ]


def _labels_of_image(layer: Layer) -> Mapping[str, str]:
    return {"flagperf.layer": layer.kind, LABEL_RUN: "", LABEL_ROLE: ""}


def _dockerfile_argv(engine: Engine, site: BuildSite, layer: Layer, image: ImagePlan) -> tuple[str, ...]:
    # of a proxy the name alone: the engine takes its value from the environment
    build_args = [*(f"{name}={value}" for name, value in image.build_args), *image.proxies]
    context = f"{site.tree}/{layer.files[0]}"
    return engine.build(context, layer.tag, build_args, "flagperf.layer=dockerfile", image.mounted)


def _build_unit(site: BuildSite, layer: Layer, below: Layer, mounts: Sequence[Mount]) -> Unit:
    return Unit(
        name=site.name,
        # so that a build that is interrupted is found and removed with the rest of the run
        labels={LABEL_RUN: site.run_uid, LABEL_ROLE: "build"},
        image=below.tag,
        argv=(
            *WITH_VARIABLES,
            *_step(layer),
        ),  # the proxies: in the container's own environment a commit keeps them
        mounts=(*_mounts(site, layer), *(mount for mount in mounts if _serves(mount, layer))),
        # an install script leaves what it fetches where it stands: that is the image's own folder, as ever
        workdir="" if layer.kind == "install" else TREE_FOLDER,
        capabilities=tuple(BUILD_CAPABILITIES),
        host_network=True,  # mirrors and proxies are where the host's own pip has them, often on 127.0.0.1
    )


def listing_unit(site: BuildSite, tag: str, argv: Sequence[str]) -> Unit:
    """What lists something of an image that is not trusted with more: labelled, so that it is found if it stays."""
    labels = {LABEL_RUN: site.run_uid, LABEL_ROLE: "build"}
    return Unit(name=f"{site.name}-listing", labels=labels, image=tag, argv=tuple(argv))


def _serves(mount: Mount, layer: Layer) -> bool:
    """The code of strangers that pip runs sees no build argument."""
    return layer.kind == "install" or mount.inside != SECRETS_FOLDER


def _mounts(site: BuildSite, layer: Layer) -> tuple[Mount, ...]:
    tree = Mount(site.tree, TREE_FOLDER)
    if layer.kind != "install":
        return (tree,)
    return (tree, Mount(f"{site.tree}/{layer.files[0].rpartition('/')[0]}", DOCKER_FOLDER))


def _step(layer: Layer) -> tuple[str, ...]:
    # both streams in one already here: an engine hands on two in any order
    paths = [f"{TREE_FOLDER}/{name}" for name in layer.files]
    if layer.kind == "install":
        return ("sh", "-c", 'exec bash "$1" 2>&1', "sh", paths[0])
    if layer.kind == "extension":
        return ("bash", "-c", BUILD_EXTENSION, "bash", *paths)
    # a distribution's own Python may refuse pip (PEP 668): what it guards is a system, and this is an image
    install = "exec env PIP_BREAK_SYSTEM_PACKAGES=1 PIP_ROOT_USER_ACTION=ignore python3 -m pip install"
    files = [word for path in paths for word in ("--requirement", path)]
    return ("sh", "-c", f'{install} --no-cache-dir "$@" 2>&1', "sh", *files)


async def run_logged(
    transport: Transport,
    argv: tuple[str, ...],
    log: ByteSink,
    variables: Mapping[str, str],
    stdin: bytes | None = None,
) -> None:
    """Run a step of a build with environment variables that no process list shows; what it prints goes to `log`.

    Raises:
        CommandError: it failed; it carries the end of its output.
    """
    last = Tail(KEPT_OUTPUT_BYTES)

    async def keep(chunk: bytes) -> None:
        await last.take(chunk)
        await log(chunk)

    completed = await transport.run(
        (*MERGED, *argv), stdin=stdin, stdout=keep, timeout=BUILD_TIMEOUT_S, variables=variables
    )
    if not completed.ok:
        failed = replace(completed, argv=argv, stdout=last.text, is_cut=last.is_cut)
        raise CommandError(failed, _remedy(last.text))


def _remedy(output: str) -> str:
    lowered = output.lower()
    if any(
        text in lowered
        for text in ("pull access denied", "registry-1", "manifest unknown", "dial tcp", "did not resolve")
    ):
        return (
            "the base image cannot be pulled: check the network, name it with its registry (docker.io/...), or "
            "name one that this host has with IMAGE_BUILD_ARGS = {'BASE_IMAGE': '<image>'} in test_conf.py"
        )
    if "no new privileges" in lowered:
        return "an install script is root by itself: leave out sudo, or end the vendor's Dockerfile with `USER root`"
    if "no module named pip" in lowered:
        return "the image needs pip for its python3: install it in the vendor's Dockerfile"
    if re.search(r"no matching distribution|\bpip\b|\bssl|certificate", lowered):
        return "set PIP_SOURCE, PIP_CA_FILE or PIP_WHEEL_DIRS in test_conf.py if this host is behind a mirror"
    return "the output stands in the case's image_build log"


def build_name(run_uid: str, host: str, tag: str) -> str:
    """A container name for building `tag` on `host`, unique to this run, also where hosts share a file system."""
    return f"flagperf-{run_uid}-build-{hashlib.sha256(f'{host} {tag}'.encode()).hexdigest()[:8]}"
