"""The `training/` tree as hosts get it: a tar file of its files, the list by which it is verified."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from run_benchmarks.plan.records import CaseFiles, Plan
from run_benchmarks.stages.tree_files import files_in, not_packed, problems_in
from utils.errors import FlagPerfError, Problem, ProblemsError

# The controller (its config files may hold credentials), results and caches stay at home.
LEFT_OUT_AT_TOP = frozenset({"run_benchmarks", "result"})
# What the conformance kit reads and writes: recordings of vendors' tools, and its reports.
LEFT_OUT = ("*/recordings", "*/conformance.json", "*/conformance.md", "conformance-*")
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
                raise not_packed(path, error) from error
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


def mount_points(flagperf_path: str, log_path: str) -> tuple[str, ...]:
    """Folders that containers mount inside the read-only tree: the log path, by FlagPerf's own default."""
    inside, log = Path(flagperf_path), Path(log_path)
    return (log.relative_to(inside).as_posix(),) if log != inside and log.is_relative_to(inside) else ()


def extern_folders(cases: Iterable[CaseFiles]) -> tuple[str, ...]:
    """What scripts of the cases' own get as --extern_module_dir: existing drivers fail without them."""
    own = [files for files in cases if files.script.startswith(f"{files.case_dir}/")]
    return tuple(sorted({files.extern_dir for files in own}))
