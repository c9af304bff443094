"""The manifest of a prepared data set: which files belong to it, how large they are, their SHA-256.

It stands as `manifest.json` in the data directory. Its bytes are canonical (sorted keys, no time, no
absolute path), so that the same preparation gives the same manifest everywhere and two nodes can be
compared by one digest.

A folder below the data directory that holds a listed file holds listed files only: a shard left over
from another preparation would be trained on. The data directory itself may hold more (checkpoints).

A host without Python is checked through what GNU find and sha256sum print there (`listing_command`, `listed_in`); the
comparison is made here (`compare_sizes`, `compare_sums`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from utils.errors import FlagPerfError, Problem, raised
from utils.plain_data import is_small
from utils.writing import whole_file

MANIFEST_NAME = "manifest.json"
FORMAT = "flagperf-manifest-1"
# Of what a manifest says beside its files: parameters and counts, which are a few dozen.
MOST_WORDS, DEEPEST = 10_000, 16
Report = Callable[[int], None]  # called with the bytes read so far


@dataclass(frozen=True)
class FileEntry:
    """One file: `path` relative to the data directory, `/` between its parts; size in bytes."""

    path: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What was prepared, by which tool, from which parameters; `facts` are counts and baselines found."""

    dataset: str
    tool: str
    parameters: Mapping[str, Any]
    facts: Mapping[str, Any]
    files: tuple[FileEntry, ...] = field(default=())

    @property
    def text(self) -> str:
        """The bytes of `manifest.json`, as text."""
        content = {"format": FORMAT, **asdict(self), "files": [asdict(entry) for entry in self.files]}
        return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 of `manifest.json`: equal digests mean equal data sets."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def total_bytes(self) -> int:
        return sum(entry.bytes for entry in self.files)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits; reads it in blocks of 1 MiB."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def describe(directory: Path, paths: Sequence[str], *, workers: int = 1) -> tuple[FileEntry, ...]:
    """Entries of the files `paths` (relative to `directory`), sorted by path; reads every file."""

    def entry(path: str) -> FileEntry:
        file = directory / path
        return FileEntry(_checked_path(path, str(directory)), file.stat().st_size, sha256_of(file))

    with ThreadPoolExecutor(max(1, workers)) as pool:
        return tuple(pool.map(entry, sorted(paths)))


def write(directory: Path, manifest: Manifest) -> Path:
    """Write `manifest.json`; it is never seen half-written. OSError where it cannot be written."""
    for entry in manifest.files:
        _checked_path(entry.path, str(directory))
    target = directory / MANIFEST_NAME
    with whole_file(target) as stream:
        stream.write(manifest.text.encode())
        stream.flush()
        os.fsync(stream.fileno())
    return target


def read(directory: Path) -> Manifest:
    """The manifest of `directory`; FlagPerfError where there is none or it cannot be read."""
    path = directory / MANIFEST_NAME
    try:
        return parse(path.read_text(encoding="utf-8"), where=str(path))
    except FileNotFoundError:
        raise FlagPerfError(
            "there is no manifest, so nothing says what this data set should hold",
            where=str(path),
            remedy="prepare the data with the case's `prepare` command, or copy its manifest.json too",
        ) from None
    except UnicodeDecodeError as error:
        raise _malformed(str(path), f"not UTF-8 ({error})") from None
    except OSError as error:
        raise _malformed(str(path), f"{error.strerror}") from None


def parse(text: str, *, where: str) -> Manifest:
    """A manifest from its text; `where` (host and file) stands in the error of a malformed one."""
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise _malformed(where, f"format is {content['format']!r}, not {FORMAT!r}")
        files = tuple(_file_entry(entry, where) for entry in content["files"])
        if not files:
            raise _malformed(where, "it lists no files, so it says nothing of the data")
        words = [content[name] for name in ("dataset", "tool", "parameters", "facts")]
        if not is_small(words, MOST_WORDS, DEEPEST):
            raise _malformed(where, f"beside its files more than {MOST_WORDS} values, or {DEEPEST} levels")
        dataset, tool, parameters, facts = words
        # nothing is half a character
        Manifest(dataset, tool, parameters, facts).text.encode()
        return Manifest(dataset, tool, parameters, facts, files)
    except json.JSONDecodeError as error:
        raise _malformed(where, f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _malformed(where, raised(error)) from None


def verify(directory: Path, *, workers: int = 1, report: Report | None = None) -> list[Problem]:
    """Every missing, short, altered or unexpected file of `directory`; an empty list means it is whole.

    Reads every byte (SHA-256) of the files whose size is right.
    """
    manifest = read(directory)
    problems = _compare_sizes(manifest, _sizes(manifest, directory), str(directory))
    wrong = {problem.name for problem in problems}
    right_size = [entry for entry in manifest.files if entry.path not in wrong]
    problems += _compare_contents(directory, right_size, workers, report)
    return sorted(problems, key=lambda problem: problem.name)


@dataclass(frozen=True)
class Listed:
    """A file that is there: its size in bytes, and its stamp, which no program can alter the file and keep.

    file_system: its kind, `ext4`. device: the host's number of it. changed_s: when the file was last changed in any way
    (ctime), in seconds since 1970 by its file system's clock.
    """

    bytes: int
    file_system: str
    device: str
    stamp: str
    changed_s: float


def listing_command(manifest: Manifest, directory: str) -> list[str]:
    """argv that lists the files in `directory` for `listed_in` (GNU find)."""
    depth = max((len(PurePosixPath(entry.path).parts) for entry in manifest.files), default=1)
    form = "%s %F %D %i:%T@:%C@ %P\\0"
    return ["find", "-L", directory, "-maxdepth", str(depth), "-type", "f", "-printf", form]


def listed_in(listing: str, where: str) -> dict[str, Listed]:
    """The files that `listing_command` printed, by path; `where` (host and directory) stands in an error."""
    return dict(_listed(entry, where) for entry in listing.split("\0") if entry)


_LISTED = re.compile(
    r"(\d{1,19}) (\S{1,64}) (\d{1,20}) (\d{1,20}:-?\d{1,19}\.\d+:(-?\d{1,19}\.\d+)) (.+)",
    re.ASCII | re.DOTALL,
)


def _listed(entry: str, where: str) -> tuple[str, Listed]:
    match = _LISTED.fullmatch(entry)
    if match is None:
        raise FlagPerfError(f"cannot read this entry of the file listing: {entry!r}", where=where)
    size, file_system, device, stamp, changed, path = match.groups()
    return path, Listed(int(size), file_system, device, stamp, float(changed))


def compare_sizes(manifest: Manifest, listed: Mapping[str, Listed], where: str) -> list[Problem]:
    """Compare names and sizes with those of the files that are in the host and directory `where`."""
    return _compare_sizes(manifest, {path: file.bytes for path, file in listed.items()}, where)


def compare_sums(entries: Sequence[FileEntry], sums: Mapping[str, str], where: str) -> list[Problem]:
    """Compare with the SHA-256, by path, of those files of the host and directory `where` that could be read."""
    differing = (entry for entry in entries if sums.get(entry.path, entry.sha256) != entry.sha256)
    return [_altered(where, entry.path) for entry in differing]


def _sizes(manifest: Manifest, directory: Path) -> dict[str, int]:
    """Sizes of the listed files that are there, and of all else in the folders that hold them."""
    listed = {directory / entry.path for entry in manifest.files}
    beside = {file for folder in _closed_folders(manifest) for file in (directory / folder).glob("*")}
    present = sorted(file for file in listed | beside if file.is_file())
    return {file.relative_to(directory).as_posix(): file.stat().st_size for file in present}


def _closed_folders(manifest: Manifest) -> set[str]:
    return {str(PurePosixPath(entry.path).parent) for entry in manifest.files} - {"."}


def _compare_sizes(manifest: Manifest, sizes: Mapping[str, int], where: str) -> list[Problem]:
    listed = {entry.path for entry in manifest.files}
    closed = _closed_folders(manifest)
    problems = [
        Problem(where, path, f"{size} bytes", "unexpected: the manifest does not list it", "move it away")
        for path, size in sorted(sizes.items())
        if path not in listed and _is_in_closed_folder(PurePosixPath(path), closed)
    ]
    for entry in manifest.files:
        size = sizes.get(entry.path)
        if size is None:
            problems.append(_missing(where, entry))
        elif size != entry.bytes:
            kind = "shorter" if size < entry.bytes else "longer"
            message = f"{kind} than the {entry.bytes} bytes that its manifest has"
            problems.append(Problem(where, entry.path, f"{size} bytes", message, _AGAIN))
    return problems


def _is_in_closed_folder(path: PurePosixPath, closed: set[str]) -> bool:
    return str(path.parent) in closed and not path.name.startswith(".")


def _compare_contents(
    directory: Path, entries: Sequence[FileEntry], workers: int, report: Report | None
) -> list[Problem]:
    def problem_of(entry: FileEntry) -> Problem | None:
        try:
            same = sha256_of(directory / entry.path) == entry.sha256
        except OSError as error:
            return Problem(str(directory), entry.path, "", f"cannot be read: {error.strerror}", _AGAIN)
        return None if same else _altered(str(directory), entry.path)

    problems, done = [], 0
    with ThreadPoolExecutor(max(1, workers)) as pool:  # hashing releases the interpreter lock
        for entry, problem in zip(entries, pool.map(problem_of, entries), strict=True):
            done += entry.bytes
            if report is not None:
                report(done)
            if problem is not None:
                problems.append(problem)
    return problems


_AGAIN = "copy the file again from a good host, or prepare the data again"


def _missing(where: str, entry: FileEntry) -> Problem:
    return Problem(where, entry.path, "", f"missing or unreadable ({entry.bytes} bytes)", _AGAIN)


def _altered(where: str, path: str) -> Problem:
    return Problem(where, path, "", "altered: its SHA-256 is not that of the manifest", _AGAIN)


def _file_entry(item: Any, where: str) -> FileEntry:
    return FileEntry(_checked_path(item["path"], where), int(item["bytes"]), _checked_sha256(item["sha256"]))


def _checked_path(path: str, where: str) -> str:
    """`path`, if it is relative, stays below the data directory and survives sha256sum's line format."""
    parts = PurePosixPath(path).parts
    unfit = any(mark in path for mark in "\\\n\r") or path != path.encode(errors="replace").decode()
    if not parts or path.startswith("/") or ".." in parts or unfit:
        raise _malformed(where, f"not a path of a file below the data directory: {path!r}")
    return path


def _checked_sha256(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ValueError(f"not a SHA-256: {text!r}")
    return text


def _malformed(where: str, why: str) -> FlagPerfError:
    return FlagPerfError(
        f"the manifest cannot be read: {why}",
        where=where,
        remedy="copy manifest.json again from a good host, or prepare the data again",
    )
