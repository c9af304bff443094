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
    """
    at_home = {training_dir / name for name in LEFT_OUT_AT_TOP} | set(left_out)
    archive = pack(training_dir, at_home, folders)
    return Tree(hashlib.sha256(archive).hexdigest()[:16], archive)


def pack(folder: Path, left_out: Collection[Path] = (), empty: tuple[str, ...] = ()) -> bytes:
    """A tar file of what a host gets of `folder`, with `empty` folders besides; its bytes name the content.

    Raises:
        FlagPerfError: it is far larger than code: data lies in it.
    """
    buffer = io.BytesIO()
    # dereferenced: of files that are linked with each other each is a file
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, dereference=True) as archive:
        for path in _files_to_deploy(folder, left_out):
            # looked at before it is read: what does not belong here may be larger than the memory
            if buffer.tell() + path.stat().st_size > LARGEST_TREE:
                raise FlagPerfError(
                    f"more than {LARGEST_TREE >> 20} MiB to deploy; {path} is among it",
                    where=str(folder),
                    remedy="keep data sets and checkpoints outside the training/ folder",
                )
            archive.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=_plain)
        for name in empty:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        archive.addfile(tarfile.TarInfo(END_MARK))
    return buffer.getvalue()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Of a file only its name, its content and whether its owner may execute it are deployed."""
    plain = tarfile.TarInfo(entry.name)
    plain.size, plain.mode = entry.size, 0o755 if entry.mode & 0o100 else 0o644
    return plain


async def deploy_tree(transport: Transport, tree: Tree, path: str) -> bool:
    """Make sure that the tree is at `path` on the host; whether it had to be sent."""
    if (await transport.run(["test", "-d", path], timeout=60)).ok:
        return False
    remedy = "check FLAGPERF_PATH_HOST in test_conf.py: it must be writable there and have free space"
    await checked(transport, ["sh", "-c", UNPACK, path], stdin=tree.archive, timeout=600, remedy=remedy)
    return True


def _files_to_deploy(folder: Path, left_out: Collection[Path]) -> Iterator[Path]:
    """Every file of `folder` that a host gets, in a fixed order."""
    for path in sorted(folder.iterdir()):
        if path in left_out or not _belongs_to_tree(path):
            continue
        if path.is_dir():
            yield from _files_to_deploy(path, left_out)
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
