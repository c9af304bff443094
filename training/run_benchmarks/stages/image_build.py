"""Build a case's image on a host: each layer that is not there yet."""

from __future__ import annotations

import configparser
import hashlib
import io
import re
import shlex
import tarfile
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from run_benchmarks.names import LABEL_ROLE, LABEL_RUN
from run_benchmarks.plan.records import PipSettings
from run_benchmarks.plan.redact import redact_values
from run_benchmarks.runtimes.base import Mount
from run_benchmarks.stages.image_plan import ImagePlan, Layer
from run_benchmarks.transports.base import ByteSink, CommandError, Transport, checked
from utils.errors import FlagPerfError

BUILD_TIMEOUT_S = 7200.0
PIP_FOLDER = "/flagperf-pip"
INDEX_OPTIONS = ("index-url", "extra-index-url")
CHUNK = 2**20
TREE_FOLDER = "/flagperf-tree"
# Both streams in one, in the order in which they were written: that is how a build log is read.
MERGED = ("sh", "-c", 'exec 2>&1; exec "$@"', "sh")
# As MERGED; standard input first sets variables. `eval` is the shell's own, so no process ever has them as arguments.
MERGED_WITH_VARIABLES = ("sh", "-c", 'exec 2>&1; eval "$(cat)"; exec "$@" </dev/null', "sh")
# $0: a private folder to make; its content as a tar file on standard input.
UNPACK_PRIVATE = 'set -e; umask 077; rm -rf "$0"; mkdir -p "$0"; tar -xf - -C "$0"'


@dataclass(frozen=True)
class BuildSite:
    """Where and how an image is built.

    engine: the engine's command; tree, work: folders on the host; name: for containers, unique to this run and case.
    """

    engine: str
    tree: str
    work: str
    run_uid: str
    name: str
    local: bool


async def image_id(transport: Transport, engine: str, tag: str) -> str | None:
    """The ID of the image `tag` on the host, or None where it has no such image."""
    completed = await transport.run([engine, "image", "inspect", "--format", "{{.Id}}", tag], timeout=60)
    if completed.ok:
        return completed.stdout.strip()
    if "no such" in completed.stderr.lower() or "not known" in completed.stderr.lower():
        return None
    raise CommandError(completed, f"check that `{engine} image ls` works on this host")


async def build_image(
    transport: Transport, site: BuildSite, image: ImagePlan, pip: PipSettings, log: ByteSink
) -> None:
    """Make every layer of `image` that the host lacks; what the builds print goes to `log`.

    Raises:
        CommandError: a build failed; it carries the end of its output.
    """
    uses_pip = len(image.layers) > 1 and _has_any(pip)
    try:
        # within the try: what was interrupted half-way may have left credentials on the host too
        mounts = await _hand_over_pip(transport, site, pip) if uses_pip else ()
        for below, layer in zip((None, *image.layers), image.layers, strict=False):
            if await image_id(transport, site.engine, layer.tag) is None:
                await log(f"--- {layer.kind}: {layer.tag}\n".encode())
                secrets = secret_build_args(image) if below is None else {}
                for argv in layer_argvs(site, layer, below, image, mounts):
                    await _logged(transport, argv, log, secrets)
    finally:
        if uses_pip:
            await transport.run(pip_folder_argvs(site)[1], timeout=60)


def layer_argvs(
    site: BuildSite, layer: Layer, below: Layer | None, image: ImagePlan, mounts: Sequence[Mount]
) -> list[tuple[str, ...]]:
    """The commands that make one layer on the host."""
    if below is None:
        return [_dockerfile_argv(site, layer, image)]
    # A commit keeps the container's command, entrypoint and labels; the image must not carry those of the
    # build. An entrypoint cannot be taken away again: `env` is one that does nothing.
    change = ("--change", 'ENTRYPOINT ["env"]', "--change", 'CMD ["bash"]')
    labels = ("--change", f'LABEL flagperf.layer={layer.kind} {LABEL_RUN}="" {LABEL_ROLE}=""')
    return [
        (site.engine, "rm", "--force", site.name),
        _container_argv(site, layer, below, mounts),
        (site.engine, "commit", *change, *labels, site.name, layer.tag),
        (site.engine, "rm", "--force", site.name),
    ]


def secret_build_args(image: ImagePlan) -> dict[str, str]:
    """The build arguments that must not stand in a process list: those that are shown redacted.

    Raises:
        FlagPerfError: one is named so that no variable can hold it.
    """
    values = dict(image.build_args)
    shown = redact_values(values)
    secrets = {name: value for name, value in values.items() if shown[name] != value}
    for name in secrets:
        if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
            raise FlagPerfError(
                f"the build argument {name} holds a secret, which only an environment variable can hand over",
                where="IMAGE_BUILD_ARGS in test_conf.py",
                remedy="rename it, here and in the Dockerfile: letters, digits and underscores",
            )
    return secrets


def _dockerfile_argv(site: BuildSite, layer: Layer, image: ImagePlan) -> tuple[str, ...]:
    context = f"{site.tree}/{layer.files[0]}"
    secrets = secret_build_args(image)
    # a name alone: the engine takes its value from the environment
    given = [key if key in secrets else f"{key}={value}" for key, value in image.build_args]
    args = [word for arg in given for word in ("--build-arg", arg)]
    options = ("--network=host", "--rm", "--force-rm", "--label", "flagperf.layer=dockerfile")
    return (site.engine, "build", *options, *args, "--tag", layer.tag, context)


def _container_argv(site: BuildSite, layer: Layer, below: Layer, mounts: Sequence[Mount]) -> tuple[str, ...]:
    binds = [Mount(site.tree, TREE_FOLDER), *mounts]
    volumes = [word for mount in binds for word in ("--mount", _bind(mount))]
    # Labelled, so that a build that is interrupted is found and removed with the rest of the run.
    labels = ("--label", f"{LABEL_RUN}={site.run_uid}", "--label", f"{LABEL_ROLE}=build")
    start = (site.engine, "run", "--name", site.name, *labels, "--network=host", *volumes)
    # the image may bring an entrypoint of its own (the vendors' often do)
    return (*start, "--workdir", TREE_FOLDER, "--entrypoint", "sh", below.tag, "-c", *_script(layer))


def _script(layer: Layer) -> tuple[str, ...]:
    # both streams in one already here: an engine hands on two in any order
    if layer.kind == "install":
        return ('exec bash "$1" 2>&1', "sh", f"{TREE_FOLDER}/{layer.files[0]}")
    files = [word for name in layer.files for word in ("--requirement", f"{TREE_FOLDER}/{name}")]
    return ('exec python3 -m pip install --no-cache-dir "$@" 2>&1', "sh", *files)


def _bind(mount: Mount) -> str:
    return f"type=bind,source={mount.host},target={mount.inside},readonly"


async def _logged(
    transport: Transport, argv: tuple[str, ...], log: ByteSink, variables: Mapping[str, str]
) -> None:
    last = bytearray()

    async def keep(chunk: bytes) -> None:
        last.extend(chunk)
        del last[:-8192]
        await log(chunk)

    shell, stdin = (MERGED_WITH_VARIABLES, _exports(variables)) if variables else (MERGED, None)
    completed = await transport.run((*shell, *argv), stdin=stdin, stdout=keep, timeout=BUILD_TIMEOUT_S)
    if not completed.ok:
        output = last.decode(errors="replace")
        failed = type(completed)(completed.host, argv, completed.returncode, output, completed.stderr)
        raise CommandError(failed, _remedy(output))


def _exports(variables: Mapping[str, str]) -> bytes:
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()).encode()


def _remedy(output: str) -> str:
    lowered = output.lower()
    if any(text in lowered for text in ("pull access denied", "registry-1", "manifest unknown", "dial tcp")):
        return (
            "the base image cannot be pulled: check the network, or name one that this host has with "
            "IMAGE_BUILD_ARGS = {'BASE_IMAGE': '<image>'} in test_conf.py"
        )
    if re.search(r"no matching distribution|\bpip\b|\bssl|certificate", lowered):
        return "set PIP_SOURCE, PIP_CA_FILE or PIP_WHEEL_DIRS in test_conf.py if this host is behind a mirror"
    return "the whole output stands in the case's image_build log"


def _pip_folder(site: BuildSite) -> str:
    return f"{site.work}/pip/{site.name}"


def pip_folder_argvs(site: BuildSite) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The commands that make the private folder with pip's settings on the host, and that remove it."""
    folder = _pip_folder(site)
    return ("sh", "-c", UNPACK_PRIVATE, folder), ("rm", "-rf", folder)


def left_pip_folders_argv(work: str, run_uid: str) -> tuple[str, ...]:
    """The command that removes what a run whose controller was killed left of pip's settings on a host."""
    script = (
        '[ ! -d "$0" ] || find "$0" -mindepth 1 -maxdepth 1 -name "flagperf-$1-build-*" -exec rm -rf {} +'
    )
    return ("sh", "-c", script, f"{work}/pip", run_uid)


def pip_mounts(site: BuildSite, pip: PipSettings) -> tuple[Mount, ...]:
    """What a build sees of the pip settings: wheel folders of this machine are mounted from where they lie."""
    if not _has_any(pip):
        return ()
    folder = _pip_folder(site)
    mounts = [Mount(folder, PIP_FOLDER), Mount(f"{folder}/pip.conf", "/etc/pip.conf")]
    if site.local:
        mounts += [Mount(str(path), _wheels(number)) for number, path in enumerate(pip.wheel_dirs)]
        mounts += [Mount(path, path) for path in _index_folders(pip)]
    return tuple(mounts)


def _index_folders(pip: PipSettings) -> list[str]:
    """Package indexes that are folders of this machine (`file://`), with the files that they link to.

    An index named `simple` (PEP 503) links to packages in folders beside it.
    """
    urls = [url for name in INDEX_OPTIONS for url in pip.options.get(name, "").split()]
    folders = [Path(unquote(urlsplit(url).path)) for url in urls if url.startswith("file://")]
    return sorted({str(path.parent if path.name == "simple" else path) for path in folders})


def _has_any(pip: PipSettings) -> bool:
    return bool(pip.options or pip.ca_file or pip.wheel_dirs)


async def _hand_over_pip(transport: Transport, site: BuildSite, pip: PipSettings) -> tuple[Mount, ...]:
    """Bring the pip settings to the host, readable by its owner alone; wheels only where they are not there."""
    if _has_any(pip):
        argv, _ = pip_folder_argvs(site)
        with tempfile.TemporaryFile() as archive:
            _write_pip_archive(archive, pip, site.local)
            archive.seek(0)
            await checked(transport, argv, stdin=_chunks(archive), timeout=1800)
    return pip_mounts(site, pip)


def _wheels(number: int) -> str:
    return f"{PIP_FOLDER}-wheels-{number}"


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk


def _write_pip_archive(file: IO[bytes], pip: PipSettings, local: bool) -> None:
    """What goes to the build's private folder; a folder of wheels may be far larger than memory."""
    wheels = [_wheels(n) if local else f"{PIP_FOLDER}/wheels-{n}" for n in range(len(pip.wheel_dirs))]
    with tarfile.open(fileobj=file, mode="w") as archive:
        _add(archive, "pip.conf", pip_conf(pip, wheels, local=local).encode())
        if pip.ca_file:
            _add(archive, "ca.crt", pip.ca_file.read_bytes())
        for number, path in enumerate(() if local else pip.wheel_dirs):
            archive.add(path, arcname=f"wheels-{number}")


def pip_conf(pip: PipSettings, wheel_dirs: Sequence[str], *, local: bool) -> str:
    """The text of a pip.conf for inside the build; `wheel_dirs` are the folders as seen there.

    Indexes that are folders of this machine are of no use where the build is not `local`.
    """
    options = dict(pip.options)
    for name in INDEX_OPTIONS:
        urls = [url for url in options.pop(name, "").split() if local or not url.startswith("file://")]
        if urls:
            options[name] = "\n".join(urls)
    if pip.ca_file:
        options["cert"] = f"{PIP_FOLDER}/ca.crt"
    links = [*options.get("find-links", "").split(), *wheel_dirs]
    if links:
        options["find-links"] = "\n".join(links)
    config = configparser.RawConfigParser()
    config["global"] = options
    text = io.StringIO()
    config.write(text)
    return text.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = 0o600
    archive.addfile(entry, io.BytesIO(content))


def build_name(run_uid: str, host: str, tag: str) -> str:
    """A container name for building `tag` on `host`, unique to this run, also where hosts share a file system."""
    return f"flagperf-{run_uid}-build-{hashlib.sha256(f'{host} {tag}'.encode()).hexdigest()[:8]}"
