"""Bring the `training/` tree to the hosts: packed once, streamed where its content is not there yet."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from run_benchmarks.transports.base import Transport, checked
from utils.errors import FlagPerfError

# The controller (its config files may hold credentials), results and caches stay at home.
LEFT_OUT_AT_TOP = frozenset({"run_benchmarks", "result"})
LARGEST_TREE = 512 * 2**20

# $0: the folder to make, its content as a tar file on standard input. Made beside it and renamed, so that a
# broken stream never leaves half a tree under the final name; losing a race against another run is no error.
UNPACK = (
    'set -e; mkdir -p "$(dirname "$0")"; tmp=$(mktemp -d "$0.XXXXXX"); trap \'rm -rf "$tmp"\' EXIT; '
    'tar -xf - -C "$tmp"; chmod 755 "$tmp"; mv -T "$tmp" "$0" 2>/dev/null || [ -d "$0" ]'
)


@dataclass(frozen=True)
class Tree:
    """The files that the hosts get: `digest` names their content, `archive` is a tar file of them."""

    digest: str
    archive: bytes


def pack_tree(training_dir: Path, mount_points: tuple[str, ...] = ()) -> Tree:
    """Pack `training_dir`, less the controller.

    Args:
        mount_points: folders to make in it: a container's mount inside a read-only tree needs them.

    Raises:
        FlagPerfError: the tree is far larger than code: data lies in it.
    """
    digest = hashlib.sha256()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in _deployed_files(training_dir):
            name = path.relative_to(training_dir).as_posix()
            content = path.read_bytes()
            executable = bool(path.stat().st_mode & 0o100)
            digest.update(f"{name}\0{executable}\0{len(content)}\0".encode())
            digest.update(content)
            archive.addfile(_file_entry(name, len(content), executable), io.BytesIO(content))
            if buffer.tell() > LARGEST_TREE:
                raise FlagPerfError(
                    f"more than {LARGEST_TREE >> 20} MiB to deploy; {path} is among it",
                    where=str(training_dir),
                    remedy="keep data sets and checkpoints outside the training/ folder",
                )
        for folder in mount_points:
            digest.update(f"{folder}/\0".encode())
            archive.addfile(_folder_entry(folder))
    return Tree(digest.hexdigest()[:16], buffer.getvalue())


async def deploy_tree(transport: Transport, tree: Tree, path: str) -> bool:
    """Make sure that the tree is at `path` on the host; whether it had to be sent."""
    if (await transport.run(["test", "-d", path], timeout=60)).ok:
        return False
    remedy = "check FLAGPERF_PATH_HOST in test_conf.py: it must be writable there and have free space"
    await checked(transport, ["sh", "-c", UNPACK, path], stdin=tree.archive, timeout=600, remedy=remedy)
    return True


def _deployed_files(training_dir: Path) -> Iterator[Path]:
    for path in _files_of(training_dir):
        if path.relative_to(training_dir).parts[0] not in LEFT_OUT_AT_TOP:
            yield path


def _files_of(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__" or path.suffix == ".pyc":
            continue
        if path.is_dir():
            yield from _files_of(path)
        elif path.is_file():
            yield path


def _file_entry(name: str, size: int, executable: bool) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mode = 0o755 if executable else 0o644
    return entry


def _folder_entry(name: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = tarfile.DIRTYPE
    entry.mode = 0o755
    return entry
