"""Bring each node's folder back to the controller: one stream, verified by checksums, retried."""

from __future__ import annotations

import asyncio
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from run_benchmarks.transports.base import Transport, checked
from utils.errors import FlagPerfError
from utils.manifest import sha256_of

ATTEMPTS = 3
PAUSE_S = 0.5
# $0: the folder. NUL-separated, because a file name may hold anything else.
CHECKSUMS = 'cd "$0" && find . -type f -exec sha256sum --zero {} +'


def collect_argv(source: str) -> tuple[str, ...]:
    """The command that gives a folder of the host as one stream; a file with two names is sent as two files."""
    return ("tar", "-C", source, "--hard-dereference", "-cf", "-", ".")


async def collect_folder(transport: Transport, source: str, target: Path, timeout: float) -> None:
    """Copy the folder `source` of the host to `target`, which appears whole or not at all.

    Raises:
        FlagPerfError: it could not be brought back; it still lies on the host.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            await _copy(transport, source, target, timeout)
            return
        except FlagPerfError as error:
            if attempt == ATTEMPTS:
                raise FlagPerfError(
                    f"the logs were not collected: {error.message}",
                    where=transport.host,
                    remedy=f"they still lie on {transport.host} in {source}",
                ) from error
            await asyncio.sleep(PAUSE_S * attempt)


async def _copy(transport: Transport, source: str, target: Path, timeout: float) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # A leading dot: a reader of the result tree never takes a half-collected folder for a result.
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            content = Path(folder) / "content"
            await _fetch(transport, source, Path(folder) / "archive.tar", content, timeout)
            content.replace(target)
    except tarfile.TarError as error:
        raise FlagPerfError(f"the stream of {source} is broken: {error}", where=transport.host) from error
    except OSError as error:
        raise FlagPerfError(f"it cannot be written here: {error}", where=str(target)) from error


async def _fetch(transport: Transport, source: str, archive: Path, content: Path, timeout: float) -> None:
    with archive.open("wb") as file:

        async def sink(chunk: bytes) -> None:
            file.write(chunk)

        await checked(transport, collect_argv(source), stdout=sink, timeout=timeout)
    await asyncio.to_thread(_unpack, archive, content)
    listed = await checked(transport, ["sh", "-c", CHECKSUMS, source], timeout=timeout)
    await asyncio.to_thread(_verify, content, listed.stdout, source)


def _unpack(archive: Path, content: Path) -> None:
    """Unpack regular files and folders; links and device files have no place among logs."""
    content.mkdir()
    with tarfile.open(archive) as tar:
        for member in tar:
            parts = PurePosixPath(member.name).parts
            if ".." in parts or PurePosixPath(member.name).is_absolute():
                raise FlagPerfError(f"the stream holds a path outside its folder: {member.name}")
            target = content.joinpath(*parts)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
            elif member.isfile():
                target.parent.mkdir(parents=True, exist_ok=True)
                reader = tar.extractfile(member)
                if reader is None:
                    raise FlagPerfError(f"the stream holds no content for {member.name}")
                with target.open("wb") as file:
                    shutil.copyfileobj(reader, file)


def _verify(content: Path, listed: str, source: str) -> None:
    for line in filter(None, listed.split("\0")):
        expected, _, name = line.partition("  ")
        path = content / name
        if not path.is_file():
            raise FlagPerfError(f"{name} is missing from the stream of {source}")
        if sha256_of(path) != expected:
            raise FlagPerfError(f"{name} was altered on its way from {source}")
