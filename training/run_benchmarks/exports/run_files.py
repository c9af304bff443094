"""The files of a run's folder, whatever lies there: links, pipes and what cannot be read are named and not followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from utils.errors import FlagPerfError
from utils.text_files import entered, opened

LARGEST_FILE = 2**30  # bytes, as of what is collected from hosts
LARGEST_DOCUMENT = 2**26
LARGEST_LINE = 2**24
BLOCK = 2**16  # bytes: lines that hold nothing to hide are looked at so many at a time
MOST_FILES = 200_000
MOST_DEEP = 64  # folders in each other: a run has three
REPORT = "report.html"


@dataclass(frozen=True)
class RunFile:
    """A file or folder in a run. name: its path in `folder`. objection: why it is not taken; empty where it is.

    state: which file it was, and in which state, when it was looked at. names_nothing: whether it was looked through
    for names of secrets, and has none.
    """

    folder: Path
    name: str
    objection: str = ""
    state: tuple[int, ...] = ()
    names_nothing: bool = False

    @property
    def is_document(self) -> bool:
        """Whether it is one JSON value."""
        return self.name.endswith(".json") and self.state[0] <= LARGEST_DOCUMENT

    def blocks(self) -> Iterator[str]:
        """A file that is taken, in blocks of whole lines; one JSON value all at once.

        Raises:
            FlagPerfError: it is not what was looked at any more, or not to the end of these lines.
        """
        with opened(self.folder / self.name, LARGEST_FILE, self.folder) as file:
            self._compare(file)
            for block in [file.read(LARGEST_DOCUMENT)] if self.is_document else _blocks(file):
                yield block.decode("utf-8", "surrogateescape")
            self._compare(file)

    def _compare(self, file: BinaryIO) -> None:
        if _state(file) != self.state:
            raise FlagPerfError("was changed while the run was exported", where=self.name)


def node_of(file: RunFile) -> str:
    """The folder of the node that wrote a file; of the controller's own its round's, or the run's."""
    return "/".join(PurePosixPath(file.name).parts[:-1][:3])


def looked_at(folder: Path, name: str) -> RunFile:
    """The plain file `name` in `folder`, and whether it is taken."""
    if PurePosixPath(name).name == REPORT:
        return RunFile(folder, name, "it is made of the rest: `run.py report` makes it again")
    try:
        with opened(folder / name, LARGEST_FILE, folder) as file:
            return RunFile(folder, name, _objection(file), _state(file))
    except FlagPerfError as error:
        return RunFile(folder, name, f"it {error.message}")


def files_below(folder: Path) -> Iterator[RunFile]:
    """Every file below `folder`, sorted; folders only where they cannot be looked into."""
    for number, file in enumerate(_below(folder)):
        if number >= MOST_FILES:
            reason = f"there are more than {MOST_FILES} files: what follows is not looked at"
            yield RunFile(folder, "...", reason)
            return
        yield file


def _objection(file: BinaryIO) -> str:
    for block in _blocks(file):
        if b"\0" in block:
            return "it is no text: a secret in it could not be seen"
        if len(block) > LARGEST_LINE:
            return f"it has a line of more than {LARGEST_LINE - BLOCK} bytes"
    return ""


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(BLOCK):
        yield block + file.readline(LARGEST_LINE)


def _state(file: BinaryIO) -> tuple[int, ...]:
    """Its size, which file it is, and when it was last changed: nobody can set that time."""
    state = os.fstat(file.fileno())
    return state.st_size, state.st_dev, state.st_ino, state.st_ctime_ns


def _below(root: Path, prefix: str = "") -> Iterator[RunFile]:
    if prefix.count("/") > MOST_DEEP:
        yield RunFile(root, prefix, f"it lies in more than {MOST_DEEP} folders: it is not looked into")
        return
    try:
        with entered(root / prefix, root) as place:
            entries = sorted((entry.name, _kind(entry)) for entry in os.scandir(place))
    except OSError as error:
        yield RunFile(root, prefix.rstrip("/"), f"it cannot be listed: {error.strerror}")
        return
    for last, kind in entries:
        name = f"{prefix}{last}"
        shown = name.encode("utf-8", "backslashreplace").decode()
        if shown != name or not name.isprintable():
            yield RunFile(root, repr(shown)[1:-1], "its name is no text of one line")
        elif kind == "folder":
            yield from _below(root, f"{name}/")
        elif kind == "file":
            yield looked_at(root, name)
        else:
            yield RunFile(root, name, f"it is {kind}")


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "a link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else "no plain file"
