"""The `training/` tree as hosts get it: which files it has, a tar file of them, the list by which it is verified."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from run_benchmarks.plan.records import CaseFiles, Plan
from utils.errors import FlagPerfError, Problem, ProblemsError

# The controller (its config files may hold credentials), results and caches stay at home.
LEFT_OUT_AT_TOP = frozenset({"run_benchmarks", "result"})
# What the conformance kit reads and writes: recordings of vendors' tools, and its reports.
LEFT_OUT = ("*/recordings", "*/conformance.json", "*/conformance.md", "conformance-*")
# Hidden files are the editor's and the tools', but this one is read by the engine where the image is built.
KEPT_HIDDEN = frozenset({".dockerignore"})
LARGEST_TREE = 512 * 2**20
DOCKER_IMAGE = "docker_image"
NOT_DATA = "keep data sets and checkpoints outside the training/ folder"
NOT_INSTALLERS = (
    "keep installers outside the training/ folder: build an image with them once (docs/images.md, Large installers), "
    "and let the Dockerfile begin FROM that one"
)
# The last entry of the archive: tar takes a stream that is cut between two entries for a whole one.
END_MARK = ".flagperf-whole"


@dataclass(frozen=True)
class Tree:
    """The files that the hosts get; `archive` is a tar file of them."""

    archive: bytes

    @cached_property
    def entries(self) -> frozenset[str]:
        """A line for what each path is, and one for the content of each file, as CONTENT lists them on a host."""
        return frozenset(_entries(self.archive))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the entries as `LC_ALL=C sort -z` has them: it stands for names, content and modes."""
        listing = b"".join(sorted(f"{entry}\0".encode() for entry in self.entries))
        return hashlib.sha256(listing).hexdigest()


def tree_of(plan: Plan) -> Tree:
    """The tree that the hosts of `plan` get."""
    inside, log = plan.run.flagperf_path_container, plan.run.log_path_container
    folders = (*mount_points(inside, log), *extern_folders(case.files for case in plan.cases))
    return pack_tree(plan.training_dir, folders, plan.run.log_path)


def pack_tree(training_dir: Path, folders: tuple[str, ...] = (), log_path: Path | None = None) -> Tree:
    """Pack `training_dir`, less the controller.

    Args:
        folders: to make in it, empty: a container's mount inside a read-only tree needs one.
        log_path: where the user puts results, which stay at home too.
    """
    return Tree(pack(training_dir, _at_home(training_dir, log_path), folders))


def tree_problems(training_dir: Path, log_path: Path) -> list[Problem]:
    """What cannot be packed: links that lead elsewhere, names that are no text, the unreadable, the too large."""
    left_out = _at_home(training_dir, log_path)
    return problems_in(training_dir, left_out) or too_large(training_dir, left_out)


def files_in(folder: Path, left_out: Collection[Path] = ()) -> Iterator[Path]:
    """The files that a host would get of `folder`, in a fixed order; see `problems_in` for what cannot be had.

    Raises:
        FlagPerfError: what was there is gone.
    """
    return filter(Path.is_file, _paths(folder, left_out))


def pack(folder: Path, left_out: Collection[Path] = (), empty: tuple[str, ...] = ()) -> bytes:
    """A tar file of what a host gets of `folder`, with `empty` folders besides; its bytes name the content.

    Raises:
        ProblemsError: something in it cannot be packed.
        FlagPerfError: it is far larger than code: data lies in it; or it is altered meanwhile.
    """
    problems = problems_in(folder, left_out)
    if problems:
        raise ProblemsError(problems)
    buffer = io.BytesIO()
    # dereferenced: of files that are linked with each other each is a file
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, dereference=True) as archive:
        for path in files_in(folder, left_out):
            try:
                _add(archive, path, folder, LARGEST_TREE - buffer.tell())
            except OSError as error:
                raise _not_packed(path, error) from error
        for name in empty:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        archive.addfile(tarfile.TarInfo(END_MARK))
    return buffer.getvalue()


def too_large(training_dir: Path, left_out: Collection[Path] = ()) -> list[Problem]:
    """Where the tree, or a folder of it, is larger than hosts take: the file that makes it so, and what to do."""
    sizes = {path: _size(path) for path in files_in(training_dir, left_out)}
    total = sum(sizes.values())
    if total <= LARGEST_TREE:
        return []
    largest = max(sizes, key=lambda path: sizes[path])
    name = largest.relative_to(training_dir).as_posix()
    message = (
        f"is the largest file of {total >> 20} MiB for the hosts, which get {LARGEST_TREE >> 20} at most"
    )
    remedy = NOT_INSTALLERS if DOCKER_IMAGE in largest.parts else NOT_DATA
    return [Problem(str(training_dir), name, f"{sizes[largest] >> 20} MiB", message, remedy)]


def _size(path: Path) -> int:
    """Of a file in an archive: with its header, and filled up."""
    size = path.stat().st_size
    return size + -size % tarfile.BLOCKSIZE + tarfile.BLOCKSIZE


def _add(archive: tarfile.TarFile, path: Path, folder: Path, room: int) -> None:
    """Add a file of `folder`, looked at before it is read: what does not belong here may be larger than the memory."""
    if path.stat().st_size > room:
        raise FlagPerfError(
            f"more than {LARGEST_TREE >> 20} MiB to deploy; {path} is among it",
            where=str(folder),
            remedy=NOT_INSTALLERS if DOCKER_IMAGE in path.parts else NOT_DATA,
        )
    archive.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=_plain)


def _not_packed(path: Path, error: OSError) -> FlagPerfError:
    """Of a file that became shorter tarfile says "unexpected end of data", and not which."""
    return FlagPerfError(
        f"cannot be packed: {error.strerror or error}",
        where=str(path),
        remedy="start again when nothing alters the training/ folder: results, data and caches belong elsewhere",
    )


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Of a file only its name, its content and whether its owner may execute it are deployed."""
    plain = tarfile.TarInfo(entry.name)
    plain.size, plain.mode = entry.size, 0o755 if entry.mode & 0o100 else 0o644
    return plain


def _entries(archive: bytes) -> Iterator[str]:
    yield "d ."
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            yield from (f"d ./{folder}" for folder in path.parents if folder.name)
            if not member.isfile():
                yield f"d ./{path}"
                continue
            content = memoryview(archive)[member.offset_data : member.offset_data + member.size]  # no copy
            yield f"{'x' if member.mode & 0o100 else 'f'} ./{path}"
            yield f"{hashlib.sha256(content).hexdigest()}  ./{path}"


def _at_home(training_dir: Path, log_path: Path | None) -> set[Path]:
    """What no host gets: files beside the folders are no code, but what a shell or an export has left there."""
    logs = set() if log_path is None else {log_path, log_path.resolve()}
    files = {path for path in training_dir.iterdir() if path.is_file() and not path.is_symlink()}
    kit = {path for pattern in LEFT_OUT for path in training_dir.glob(pattern)}
    return {training_dir / name for name in LEFT_OUT_AT_TOP} | kit | logs | files


def _paths(folder: Path, left_out: Collection[Path]) -> Iterator[Path]:
    """What a host gets of `folder`, folders before what is in them, in a fixed order.

    Links are followed to what hosts get anyway, and to nothing else.

    Raises:
        FlagPerfError: what was there is gone, or lies deeper than a path can be long.
    """
    path = folder
    try:
        waiting = sorted(folder.iterdir(), reverse=True)
        while waiting:  # no recursion: folders may lie deeper than Python's calls
            path = waiting.pop()
            if path in left_out or not _belongs_to_tree(path):
                continue
            is_folder = path.is_dir() and (not path.is_symlink() or _leads_within(path, folder, left_out))
            yield path
            if is_folder and os.access(path, os.R_OK | os.X_OK):
                waiting += sorted(path.iterdir(), reverse=True)
    except OSError as error:
        raise _not_packed(path, error) from error


def _leads_within(link: Path, folder: Path, left_out: Collection[Path]) -> bool:
    """Whether a link leads to what hosts get of `folder` anyway: neither to what stays at home nor in a circle."""
    root, parent = folder.resolve(), link.parent.resolve()
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):  # it leads nowhere, or to itself
        return False
    if target == root or not target.is_relative_to(root) or parent.is_relative_to(target):
        return False
    if parent != root / link.parent.relative_to(folder):  # it lies behind another link
        return False
    inside = [root / part for part in (target.relative_to(root), *target.relative_to(root).parents[:-1])]
    at_home = {path.resolve() for path in left_out}
    return all(path not in at_home and _belongs_to_tree(path) for path in inside)


def _belongs_to_tree(path: Path) -> bool:
    if path.name in KEPT_HIDDEN:
        return True
    return not path.name.startswith(".") and path.name != "__pycache__" and path.suffix != ".pyc"


def problems_in(folder: Path, left_out: Collection[Path] = ()) -> list[Problem]:
    """What of `folder` no host could get, and why."""
    problems = []
    paths = list(_paths(folder, left_out))
    of_home = _of_home(paths, folder)
    for path in paths:
        objection = of_home.get(path) or _objection(path, folder, left_out)
        if objection is not None:
            name = os.fsencode(path.relative_to(folder)).decode(errors="backslashreplace")
            problems.append(Problem(str(folder), name, "", *objection))
    return problems


def _of_home(paths: Collection[Path], folder: Path) -> dict[Path, tuple[str, str]]:
    """Those that are another name of a file which stays at home, and so would bring along what it holds."""
    linked = {path: inode for path in paths if (inode := _shared_inode(path))}
    if not linked:
        return {}
    going = set(paths)
    files = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    at_home = {inode: path for path in files if path not in going and (inode := _shared_inode(path))}
    return {
        path: (f"is a hard link to what hosts do not get, {at_home[inode]}", "take it away, or copy the file")
        for path, inode in linked.items()
        if inode in at_home
    }


def _shared_inode(path: Path) -> tuple[int, int] | None:
    """Of a file that has more than one name, and something in it."""
    try:
        status = path.stat()
    except OSError:  # who reads it will say so
        return None
    shared = stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and status.st_size > 0
    return (status.st_dev, status.st_ino) if shared else None


def _objection(path: Path, folder: Path, left_out: Collection[Path]) -> tuple[str, str] | None:
    """What forbids to pack a path, and the remedy; None where nothing does."""
    if path.is_symlink() and not _leads_within(path, folder, left_out):
        return (
            "is a link to what hosts do not get, or in a circle",
            "put the file or folder itself there, or take the link away",
        )
    try:
        path.name.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8, which hosts would read in different ways", "rename it"
    if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
        return (
            "may not be read, and so cannot be brought to the hosts",
            "allow it to this user, or move it away",
        )
    return None


def mount_points(flagperf_path: str, log_path: str) -> tuple[str, ...]:
    """Folders that containers mount inside the read-only tree: the log path, by FlagPerf's own default."""
    inside, log = Path(flagperf_path), Path(log_path)
    return (log.relative_to(inside).as_posix(),) if log != inside and log.is_relative_to(inside) else ()


def extern_folders(cases: Iterable[CaseFiles]) -> tuple[str, ...]:
    """What scripts of the cases' own get as --extern_module_dir: existing drivers fail without them."""
    own = [files for files in cases if files.script.startswith(f"{files.case_dir}/")]
    return tuple(sorted({files.extern_dir for files in own}))
