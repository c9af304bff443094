"""Long file-making work in steps, so that a killed run goes on where it stopped.

A step makes its files in the workshop, a hidden folder of the output directory; when they are whole they
are renamed to their places and a record is left (sizes, SHA-256, facts found out). A later run with the
same recipe skips each step whose files are still what its record says. So nothing half-made ever stands
in the data set. One run at a time holds the workshop, and it is removed when the work is finished.

The output directory may hold files of the user. What belongs to the preparation is what its records or the
manifest name; nothing else is ever written over or removed. A record is therefore left before its files get
their places: a run killed in between finds a record without files, never files without a record.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from utils import manifest
from utils.errors import FlagPerfError
from utils.manifest import FileEntry, describe
from utils.preparation.refusals import refuse_files_of_others, refuse_other_recipe

Facts = dict[str, Any]
Make = Callable[[Sequence[Path]], Facts]
"""Makes a step's files at the temporary paths given, in the order of its outputs; returns facts."""


class ResumableError(FlagPerfError):
    """A failure that is not the input's: what was made stays, and the same command goes on from there."""


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
        self._kept = False

    @contextmanager
    def opened(
        self,
        recipe: Mapping[str, Any],
        outputs: Sequence[Path] = (),
        *,
        inputs: Iterable[Path] = (),
        restart: bool = False,
    ) -> Iterator[Workshop]:
        """Hold the workshop; a FlagPerfError within discards what was made, unless `keep` was called.

        `outputs` are all files of the data set but the manifest, `inputs` files that are read, `restart`
        discards what was begun.

        Raises:
            FlagPerfError: another run holds the workshop, or began it with another recipe.
            ProblemsError: an output is there and was not made here, or is an input; nothing was changed.
        """
        absent = [folder for folder in _folders(self.out, outputs) if not folder.exists()]
        self._make_own_folder()
        with self._locked():
            self._begin(recipe, outputs, inputs, absent, restart=restart)
            try:
                yield self
            except ResumableError:
                raise
            except FlagPerfError:
                if not self._kept:
                    self.discard()
                raise

    def keep(self) -> None:
        """The input is good: a failure from here on leaves what was made, for another try."""
        self._kept = True

    def step(self, name: str, outputs: Sequence[Path], make: Make) -> Done:
        """Step `name`, whose files are `outputs`: from its record if they are intact, else by `make`."""
        record = self.folder / "done" / f"{name}.json"
        done = self._recorded(record)
        if done is None:
            try:
                done = self._made(name, record, outputs, make)
            except OSError as error:
                raise ResumableError(
                    f"the files of step {name} cannot be written: {error}",
                    where=str(self.out),
                    remedy="make room, then give the same command again: it goes on from here",
                ) from None
        return done

    def clear(self) -> None:
        """Remove the workshop; the data set stays."""
        self._sweep(but=("lock",))
        (self.folder / "lock").unlink(missing_ok=True)  # last: it tells that the folder is a workshop
        self.folder.rmdir()

    def discard(self) -> None:
        """Remove the workshop, the files that it recorded, and the folders that it made and nobody else uses."""
        folders = self._made_folders()
        self._remove_recorded()
        self.clear()
        for folder in sorted(folders, reverse=True):  # those within others first
            with suppress(OSError):  # not empty: it holds files of somebody else, or was not needed yet
                (self.out / folder).rmdir()

    def _make_own_folder(self) -> None:
        _make_folder(self.folder)
        if any(self.folder.iterdir()) and not (self.folder / "lock").exists():
            raise FlagPerfError(
                "is no folder of a preparation",
                where=str(self.folder),
                remedy="give another --out, or move it",
            )

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

    def _begin(
        self,
        recipe: Mapping[str, Any],
        outputs: Sequence[Path],
        inputs: Iterable[Path],
        absent: Sequence[Path],
        *,
        restart: bool,
    ) -> None:
        begun = (self.folder / "recipe.json").exists()
        if not (self.folder / "folders.json").exists():
            made = [folder.relative_to(self.out).as_posix() for folder in absent]
            _write_json(self.folder / "folders.json", {"made": made})
        try:
            if begun and not restart:
                self._check_recipe(recipe)
            refuse_files_of_others(self.out, outputs, inputs, self._recorded_paths() | self._listed_paths())
        except FlagPerfError:
            if not begun:
                self.discard()
            raise
        if restart:
            self._remove_recorded()
            self._sweep(but=("lock", "folders.json"))
        if restart or not begun:
            _write_json(self.folder / "recipe.json", recipe)

    def _made(self, name: str, record: Path, outputs: Sequence[Path], make: Make) -> Done:
        temporary = [self.folder / "unfinished" / f"{name}.{number}" for number in range(len(outputs))]
        _make_folder(self.folder / "unfinished")
        facts = make(temporary)
        places = [path.relative_to(self.out).as_posix() for path in outputs]
        in_the_set = [path for path in outputs if self.folder not in path.parents]
        refuse_files_of_others(self.out, in_the_set, (), _paths_in(record) | self._listed_paths())
        files = [
            FileEntry(place, path.stat().st_size, manifest.sha256_of(path))
            for place, path in zip(places, temporary, strict=True)
        ]
        done = Done(facts, tuple(sorted(files, key=lambda entry: entry.path)))
        _write_json(record, {"facts": done.facts, "files": [asdict(entry) for entry in done.files]})
        for source, target in zip(temporary, outputs, strict=True):
            _make_folder(target.parent)
            _settle(source, target)
        return done

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
        begun = json.loads((self.folder / "recipe.json").read_text(encoding="utf-8"))
        remedy = "give the same parameters to go on, or --restart to discard what was begun"
        refuse_other_recipe(begun, recipe, where=str(self.out), remedy=remedy)

    def _recorded_paths(self) -> set[str]:
        return set().union(*map(_paths_in, (self.folder / "done").glob("*.json")))

    def _listed_paths(self) -> set[str]:
        if not (self.out / manifest.MANIFEST_NAME).exists():
            return set()
        return {entry.path for entry in manifest.read(self.out).files}

    def _made_folders(self) -> list[str]:
        path = self.folder / "folders.json"
        return list(json.loads(path.read_text(encoding="utf-8"))["made"]) if path.exists() else []

    def _remove_recorded(self) -> None:
        for path in self._recorded_paths() - self._listed_paths():  # a listed one was there before
            (self.out / path).unlink(missing_ok=True)

    def _sweep(self, *, but: Collection[str]) -> None:
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in but:
                path.unlink()


def _folders(out: Path, outputs: Iterable[Path]) -> set[Path]:
    """`out` and the folders in it that the outputs need."""
    return {out, *(folder for path in outputs for folder in path.parents if out in folder.parents)}


def _paths_in(record: Path) -> set[str]:
    if not record.exists():
        return set()
    return {entry["path"] for entry in json.loads(record.read_text(encoding="utf-8"))["files"]}


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
