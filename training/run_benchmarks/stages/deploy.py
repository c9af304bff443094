"""Bring the `training/` tree to the hosts: packed once, streamed where its content is not there yet."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from run_benchmarks.plan.records import Plan, RunSettings
from run_benchmarks.transports.base import Transport, checked
from utils.errors import FlagPerfError

# The controller (its config files may hold credentials), results and caches stay at home.
LEFT_OUT_AT_TOP = frozenset({"run_benchmarks", "result"})
# Hidden files are the editor's and the tools', but this one is read by the engine where the image is built.
KEPT_HIDDEN = frozenset({".dockerignore"})
LARGEST_TREE = 512 * 2**20
# The last entry of the archive: tar takes a stream that is cut between two entries for a whole one.
END_MARK = ".flagperf-whole"

# $0: the folder to make, its content as a tar file on standard input. Made beside it and renamed, so that a
# broken stream never leaves half a tree under the final name; losing a race against another run is no error.
UNPACK = (
    'set -e; mkdir -p "$(dirname "$0")"; tmp=$(mktemp -d "$0.XXXXXX"); trap \'rm -rf "$tmp"\' EXIT; '
    f'tar -xf - -C "$tmp"; [ -e "$tmp/{END_MARK}" ] || {{ echo "the stream was cut off" >&2; exit 1; }}; '
    'chmod 755 "$tmp"; mv -T "$tmp" "$0" 2>/dev/null || [ -d "$0" ]'
)


@dataclass(frozen=True)
class Tree:
    """The files that the hosts get: `digest` names their content, `archive` is a tar file of them."""

    digest: str
    archive: bytes


def tree_of(plan: Plan) -> Tree:
    """The tree that the hosts of `plan` get."""
    folders = (*_mount_points(plan.run), *_extern_folders(plan))
    return pack_tree(plan.training_dir, folders, (plan.run.log_path.resolve(),))


def pack_tree(training_dir: Path, folders: tuple[str, ...] = (), left_out: tuple[Path, ...] = ()) -> Tree:
    """Pack `training_dir`, less the controller.

    Args:
        folders: to make in it, empty: a container's mount inside a read-only tree needs one.
        left_out: further folders that stay at home: the results, wherever the user puts them.

    Raises:
        FlagPerfError: the tree is far larger than code: data lies in it.
    """
    at_home = {training_dir / name for name in LEFT_OUT_AT_TOP} | set(left_out)
    digest = hashlib.sha256()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in files_to_deploy(training_dir, at_home):
            # looked at before it is read: what does not belong here may be larger than the memory
            if buffer.tell() + path.stat().st_size > LARGEST_TREE:
                raise FlagPerfError(
                    f"more than {LARGEST_TREE >> 20} MiB to deploy; {path} is among it",
                    where=str(training_dir),
                    remedy="keep data sets and checkpoints outside the training/ folder",
                )
            name = path.relative_to(training_dir).as_posix()
            content = path.read_bytes()
            add_to_digest(digest, name, path, content)
            archive.addfile(_file_entry(name, len(content), is_executable(path)), io.BytesIO(content))
        for folder in folders:
            digest.update(f"{folder}/\0".encode())
            archive.addfile(_folder_entry(folder))
        archive.addfile(_file_entry(END_MARK, 0, False))
    return Tree(digest.hexdigest()[:16], buffer.getvalue())


def add_to_digest(digest: hashlib._Hash, name: str, path: Path, content: bytes) -> None:
    """Take in all of a file that reaches a host: its name, whether it is executable, its content."""
    digest.update(f"{name}\0{is_executable(path)}\0{len(content)}\0".encode())
    digest.update(content)


def is_executable(path: Path) -> bool:
    """Whether its owner may execute it; no other permission is deployed."""
    return bool(path.stat().st_mode & 0o100)


async def deploy_tree(transport: Transport, tree: Tree, path: str) -> bool:
    """Make sure that the tree is at `path` on the host; whether it had to be sent."""
    if (await transport.run(["test", "-d", path], timeout=60)).ok:
        return False
    remedy = "check FLAGPERF_PATH_HOST in test_conf.py: it must be writable there and have free space"
    await checked(transport, ["sh", "-c", UNPACK, path], stdin=tree.archive, timeout=600, remedy=remedy)
    return True


def files_to_deploy(folder: Path, left_out: Collection[Path] = ()) -> Iterator[Path]:
    """Every file of `folder` that a host gets, in a fixed order."""
    for path in sorted(folder.iterdir()):
        if path in left_out or not _belongs_to_tree(path):
            continue
        if path.is_dir():
            yield from files_to_deploy(path, left_out)
        elif path.is_file():
            yield path


def _belongs_to_tree(path: Path) -> bool:
    if path.name in KEPT_HIDDEN:
        return True
    return not path.name.startswith(".") and path.name != "__pycache__" and path.suffix != ".pyc"


def _mount_points(run: RunSettings) -> tuple[str, ...]:
    """Folders that containers mount inside the read-only tree: the log path, by FlagPerf's own default."""
    inside, log = Path(run.flagperf_path_container), Path(run.log_path_container)
    return (log.relative_to(inside).as_posix(),) if log != inside and log.is_relative_to(inside) else ()


def _extern_folders(plan: Plan) -> tuple[str, ...]:
    """The folders that scripts of the cases' own get as --extern_module_dir: existing drivers fail without them."""
    own = [case.files for case in plan.cases if case.files.script.startswith(f"{case.files.case_dir}/")]
    return tuple(sorted({files.extern_dir for files in own}))


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
