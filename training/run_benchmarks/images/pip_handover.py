"""How a build sees the user's pip settings and secrets: mounted from a private folder on the host, gone after it."""

from __future__ import annotations

import configparser
import io
import re
import tarfile
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.parse import unquote, urlsplit

from run_benchmarks.images.build import BuildSite
from run_benchmarks.names import RUN_UID
from run_benchmarks.plan.handover import SECRETS_FOLDER
from run_benchmarks.plan.pip_record import PipSettings
from run_benchmarks.runtimes.base import Mount
from run_benchmarks.stages.work_folder import ENTER_OWN, REMOVE_BELOW
from run_benchmarks.transports.base import Transport, checked

PIP_FOLDER = "/flagperf-pip"
INDEX_OPTIONS = ("index-url", "extra-index-url")
CHUNK_BYTES = 2**20
# $0: the work folder; $1: a private folder to make in it; its content as a tar file on standard input.
UNPACK_PRIVATE = f'set -e; umask 077; {ENTER_OWN}rm -rf "./$1"; mkdir -p "./$1"; exec tar -xf - -C "./$1"'


# As `build_name` names what belongs to a build.
BUILD_FOLDER = re.compile(rf"flagperf-({RUN_UID.pattern})-build-[^-]+", re.ASCII)


@asynccontextmanager
async def settings_on_host(
    transport: Transport, site: BuildSite, pip: PipSettings, secrets: Mapping[str, str]
) -> AsyncIterator[tuple[Mount, ...]]:
    """The settings on the host while an image is built, as mounts; none where there are no settings.

    Args:
        secrets: a file each, by their names.
    """
    mounts = (*pip_mounts(site, pip), *_secret_mounts(site, secrets))
    if not mounts:
        yield ()
        return
    make, remove = (
        ("sh", "-c", script, site.work, _below(site)) for script in (UNPACK_PRIVATE, REMOVE_BELOW)
    )
    try:
        # within the try: what was interrupted half-way may have left credentials on the host too
        await checked(transport, make, stdin=_archive(pip, secrets, site.local), timeout=1800)
        yield mounts
    finally:
        await transport.run(remove, timeout=60)


def _below(site: BuildSite) -> str:
    return f"pip/{site.name}"


def _pip_folder(site: BuildSite) -> str:
    return f"{site.work}/{_below(site)}"


def run_of_pip_folder(folder: str) -> str:
    """The uid of the run whose build the folder belongs to; empty where it is none of ours."""
    match = BUILD_FOLDER.fullmatch(PurePosixPath(folder).name)
    return match[1] if match else ""


def pip_mounts(site: BuildSite, pip: PipSettings) -> tuple[Mount, ...]:
    """What a build sees of the pip settings: wheel folders of this machine are mounted from where they lie."""
    if not (pip.options or pip.ca_file or pip.wheel_dirs):
        return ()
    folder = _pip_folder(site)
    mounts = [Mount(folder, PIP_FOLDER), Mount(f"{folder}/pip.conf", "/etc/pip.conf")]
    if site.local:
        mounts += [Mount(str(path), _wheels(number)) for number, path in enumerate(pip.wheel_dirs)]
        mounts += [Mount(path, path) for path in _index_folders(pip)]
    return tuple(mounts)


def _secret_mounts(site: BuildSite, secrets: Mapping[str, str]) -> tuple[Mount, ...]:
    return (Mount(f"{_pip_folder(site)}/secrets", SECRETS_FOLDER),) if secrets else ()


def _index_folders(pip: PipSettings) -> list[str]:
    """Package indexes that are folders of this machine (`file://`), with the files that they link to.

    An index named `simple` (PEP 503) links to packages in folders beside it.
    """
    urls = [url for name in INDEX_OPTIONS for url in pip.options.get(name, "").split()]
    folders = [Path(unquote(urlsplit(url).path)) for url in urls if url.startswith("file://")]
    return sorted({str(path.parent if path.name == "simple" else path) for path in folders})


def _wheels(number: int) -> str:
    return f"{PIP_FOLDER}-wheels-{number}"


async def _archive(pip: PipSettings, secrets: Mapping[str, str], local: bool) -> AsyncIterator[bytes]:
    """The private folder's content; nothing is packed before it is asked for."""
    with tempfile.TemporaryFile() as archive:
        _write_archive(archive, pip, secrets, local)
        archive.seek(0)
        while chunk := archive.read(CHUNK_BYTES):
            yield chunk


def _write_archive(file: IO[bytes], pip: PipSettings, secrets: Mapping[str, str], local: bool) -> None:
    """What goes to the build's private folder; a folder of wheels may be far larger than memory."""
    wheels = [_wheels(n) if local else f"{PIP_FOLDER}/wheels-{n}" for n in range(len(pip.wheel_dirs))]
    with tarfile.open(fileobj=file, mode="w") as archive:
        _add(archive, "pip.conf", pip_conf(pip, wheels, local=local).encode())
        if pip.ca_file:
            _add(archive, "ca.crt", pip.ca_file.read_bytes())
        for name, value in secrets.items():
            _add(archive, f"secrets/{name}", value.encode())
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
