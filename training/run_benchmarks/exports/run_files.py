"""The files of a run's folder, whatever lies there: links, pipes and what cannot be read are named and not followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from utils.errors import FlagPerfError
from utils.text_files import opened

LARGEST_FILE = 2**30  # bytes, as of what is collected from hosts
LARGEST_DOCUMENT = 2**26
LARGEST_LINE = 2**24
MOST_FILES = 200_000
REPORT = "report.html"


@dataclass(frozen=True)
class RunFile:
    """A file or folder in a run. name: its path there. objection: why it is not taken; empty where it is."""

    path: Path
    name: str
    objection: str = ""

    @property
    def is_document(self) -> bool:
        """Whether it is one JSON value."""
        return self.path.suffix == ".json" and self.path.lstat().st_size <= LARGEST_DOCUMENT

    def lines(self) -> Iterator[str]:
        """The lines of a file that is taken, with their ends; of one JSON value all at once."""
        with opened(self.path, LARGEST_FILE) as file:
            for line in [file.read()] if self.is_document else file:
                yield line.decode("utf-8", "surrogateescape")


def files_below(folder: Path) -> Iterator[RunFile]:
    """Every file below `folder`, sorted; folders only where they cannot be looked into."""
    for number, file in enumerate(_below(folder, "")):
        if number >= MOST_FILES:
            reason = f"there are more than {MOST_FILES} files: what follows is not looked at"
            yield RunFile(folder, "...", reason)
            return
        yield file


def _why_left_out(path: Path) -> str:
    """Why a plain file is not taken; empty where it is."""
    if path.name == REPORT:
        return "it is made of the rest: `run.py report` makes it again"
    try:
        with opened(path, LARGEST_FILE) as file:
            while line := file.readline(LARGEST_LINE + 1):
                if b"\0" in line:
                    return "it is no text: a secret in it could not be seen"
                if len(line) > LARGEST_LINE:
                    return f"it has a line of more than {LARGEST_LINE} bytes"
    except FlagPerfError as error:
        return f"it {error.message}"
    return ""


def _below(folder: Path, prefix: str) -> Iterator[RunFile]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield RunFile(folder, prefix.rstrip("/"), f"it cannot be listed: {error.strerror}")
        return
    for entry in entries:
        path, name = Path(entry.path), f"{prefix}{entry.name}"
        shown = name.encode("utf-8", "backslashreplace").decode()
        mode = entry.stat(follow_symlinks=False).st_mode
        if shown != name or not name.isprintable():
            yield RunFile(path, repr(shown)[1:-1], "its name is no text of one line")
        elif stat.S_ISLNK(mode):
            yield RunFile(path, name, "it is a link")
        elif stat.S_ISDIR(mode):
            yield from _below(path, f"{name}/")
        elif stat.S_ISREG(mode):
            yield RunFile(path, name, _why_left_out(path))
        else:
            yield RunFile(path, name, "it is no plain file")
