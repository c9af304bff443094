"""Long file-making work in steps, so that a killed run goes on where it stopped.

A step makes its files in the workshop, a hidden folder of the output directory; when they are whole they
are renamed to their places and a record is left (sizes, SHA-256, facts found out). A later run with the
same recipe skips each step whose files are still what its record says. So nothing half-made ever stands
in the data set. One run at a time holds the workshop, and it is removed when the work is finished.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from utils.errors import FlagPerfError
from utils.manifest import FileEntry, describe

Facts = dict[str, Any]
Make = Callable[[Sequence[Path]], Facts]
"""Makes a step's files at the temporary paths given, in the order of its outputs; returns facts."""


@dataclass(frozen=True)
class Done:
    """A finished step: the files it made and what it found out."""

    facts: Facts
    files: tuple[FileEntry, ...]


class Workshop:
    """The steps done so far for the output directory `out`."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = out / ".prepare"

    @contextmanager
    def opened(self, recipe: Mapping[str, Any], *, restart: bool = False) -> Iterator[None]:
        """Hold the workshop. FlagPerfError if another run holds it, or began it with another recipe.

        `restart` discards what was begun.
        """
        _make_folder(self.folder)
        with self._locked():
            if restart:
                self._empty()
            self._check_recipe(recipe)
            yield

    def step(self, name: str, outputs: Sequence[Path], make: Make) -> Done:
        """Step `name`, whose files are `outputs`: from its record if they are intact, else by `make`."""
        record = self.folder / "done" / f"{name}.json"
        done = self._recorded(record)
        if done is None:
            try:
                done = self._made(name, outputs, make)
                _write_json(record, {"facts": done.facts, "files": [asdict(entry) for entry in done.files]})
            except OSError as error:
                raise FlagPerfError(
                    f"the files of step {name} cannot be written: {error}",
                    where=str(self.out),
                    remedy="make room, then give the same command again: it goes on from here",
                ) from None
        return done

    def clear(self) -> None:
        """Remove the workshop, and the output directory if nothing else is in it."""
        shutil.rmtree(self.folder)
        with suppress(OSError):  # not empty: it holds the data set
            self.out.rmdir()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with _writable(self.folder / "lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FlagPerfError(
                    "another preparation is at work here", where=str(self.out), remedy="wait for its end"
                ) from None
            yield

    def _made(self, name: str, outputs: Sequence[Path], make: Make) -> Done:
        temporary = [self.folder / "unfinished" / f"{name}.{number}" for number in range(len(outputs))]
        _make_folder(self.folder / "unfinished")
        facts = make(temporary)
        for source, target in zip(temporary, outputs, strict=True):
            _make_folder(target.parent)
            _settle(source, target)
        return Done(facts, describe(self.out, [path.relative_to(self.out).as_posix() for path in outputs]))

    def _recorded(self, record: Path) -> Done | None:
        if not record.exists():
            return None
        content = json.loads(record.read_text(encoding="utf-8"))
        files = tuple(FileEntry(**entry) for entry in content["files"])
        if not all((self.out / entry.path).is_file() for entry in files):
            return None
        intact = describe(self.out, [entry.path for entry in files]) == files
        return Done(content["facts"], files) if intact else None

    def _check_recipe(self, recipe: Mapping[str, Any]) -> None:
        path = self.folder / "recipe.json"
        if path.exists():
            begun = json.loads(path.read_text(encoding="utf-8"))
            remedy = "give the same parameters to go on, or --restart to discard what was begun"
            refuse_other_recipe(begun, recipe, where=str(self.out), remedy=remedy)
        else:
            _write_json(path, recipe)

    def _empty(self) -> None:
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()


def refuse_other_recipe(
    there: Mapping[str, Any], wanted: Mapping[str, Any], *, where: str, remedy: str
) -> None:
    """FlagPerfError naming each parameter in which what is `there` differs from what is `wanted`."""
    differences = [
        f"{key} is {_shown(there.get(key))} there, {_shown(wanted.get(key))} asked"
        for key in sorted({*there, *wanted})
        if there.get(key) != wanted.get(key)
    ]
    if differences:
        message = "this directory holds data prepared otherwise: " + "; ".join(differences)
        raise FlagPerfError(message, where=where, remedy=remedy)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from None


def _writable(path: Path) -> TextIO:
    try:
        return path.open("w")
    except OSError as error:
        raise _not_writable(path, error) from None


def _not_writable(path: Path, error: OSError) -> FlagPerfError:
    return FlagPerfError(
        f"cannot be written: {error.strerror}", where=str(path), remedy="give an --out that you may write to"
    )


def _settle(temporary: Path, target: Path) -> None:
    with temporary.open("rb") as stream:
        os.fsync(stream.fileno())  # a crash of the machine must not leave a renamed but empty file
    temporary.replace(target)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")
    _settle(temporary, path)
