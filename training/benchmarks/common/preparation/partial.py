"""A data set is built in a folder beside its target, and gets its name by one renaming when it is whole.

    <target>.partial-<digest of the recipe>/
      data/    becomes the target
      work/    what steps leave for each other, and a record of each finished step
      lock     held by the run that builds

It is closed to others, who could foresee its name; one that is there is gone on with only where this user made it.

So nothing half-made is ever taken for a data set, and nothing that stands at the target is ever written over. A run
that is broken off leaves this folder; the same command finds it by the recipe and does not repeat its finished steps.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import Any

from benchmarks.common.preparation.left_folder import check_left_by_this_user
from utils import manifest
from utils.errors import FlagPerfError
from utils.manifest import FileEntry, Manifest

Facts = dict[str, Any]
Make = Callable[[Sequence[Path]], Facts]
"""Makes a step's files at the paths given, which are its outputs; returns facts."""


class ResumableError(FlagPerfError):
    """A failure that is not the input's: what was made stays, and the same command goes on from there."""


@dataclass(frozen=True)
class Done:
    """A finished step: the files of the data set that it made, and what it counted."""

    facts: Facts
    files: tuple[FileEntry, ...]


@dataclass(frozen=True)
class PartialDataset:
    """The data set `target` in the making; `folder` holds it until it is whole."""

    target: Path
    folder: Path

    @classmethod
    def of(cls, target: Path, recipe: Mapping[str, Any]) -> PartialDataset:
        """That of the run with this recipe."""
        digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()
        return cls(target, target.with_name(f"{target.name}.partial-{digest[:12]}"))

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def _lock(self) -> Path:
        return self.folder / "lock"

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the folder. After a FlagPerfError within, bad input, it is removed; else it stays until `finish`.

        Raises:
            FlagPerfError: the folder cannot be made, another user can have made it, or another run holds it.
        """
        try:
            lock = self._held()
        except OSError as error:
            raise self._not_written(error) from None
        with lock:
            try:
                self.work.mkdir(exist_ok=True)
                self.data.mkdir(exist_ok=True)
            except OSError as error:
                raise self._not_written(error) from None
            self._tell()
            try:
                yield
            except ResumableError:
                raise
            except KeyboardInterrupt:
                print(f"what is made so far stays in {self.folder}", file=sys.stderr)
                raise
            except FlagPerfError:
                self._remove()
                raise

    def step(self, name: str, outputs: Sequence[Path], make: Make) -> Done:
        """Step `name`, whose files are `outputs` in `data` or `work`: from its record, else by `make`."""
        record = self.work / "finished_steps" / f"{name}.json"
        if record.exists() and all(path.exists() for path in outputs):
            content = json.loads(record.read_text(encoding="utf-8"))
            return Done(content["facts"], tuple(FileEntry(**entry) for entry in content["files"]))
        try:
            return self._made(record, outputs, make)
        except OSError as error:
            raise ResumableError(
                f"the files of step {name} cannot be written: {error}",
                where=str(self.folder),
                remedy="make room, then give the same command again: it goes on from here",
            ) from None

    def finish(self, made: Manifest) -> None:
        """Write the manifest, give the data set its name, and remove what was needed to build it.

        Raises:
            ResumableError: something stands at the target meanwhile, or the disk takes no more.
        """
        try:
            manifest.write(self.data, made)
            for folder, _, _ in os.walk(self.data):
                _synchronise(Path(folder))
        except OSError as error:
            raise ResumableError(
                f"the manifest cannot be written: {error.strerror}",
                where=str(self.data),
                remedy="make room, then give the same command again: it goes on from here",
            ) from None
        try:
            self.data.rename(self.target)
        except OSError as error:
            raise ResumableError(
                f"the data set is made, but cannot get its name: {error.strerror}",
                where=str(self.target),
                remedy=f"move away what is there, then give the same command again; it stands in {self.data}",
            ) from None
        _synchronise(self.target.parent)
        self._remove()

    def _made(self, record: Path, outputs: Sequence[Path], make: Make) -> Done:
        for path in outputs:
            path.parent.mkdir(parents=True, exist_ok=True)
        facts = make(outputs)
        for path in outputs:
            _synchronise(path)  # a record must not outlive, in a crash of the machine, what it tells of
        names = [path.relative_to(self.data).as_posix() for path in outputs if self.data in path.parents]
        done = Done(facts, manifest.describe(self.data, names))
        content = {"facts": done.facts, "files": [asdict(entry) for entry in done.files]}
        record.parent.mkdir(exist_ok=True)
        unfinished = record.with_suffix(".tmp")
        unfinished.write_text(json.dumps(content), encoding="utf-8")
        unfinished.replace(record)
        return done

    def _held(self) -> FileIO:
        """The lock file, locked.

        The run that held it may have removed the folder after this one opened the file: a lock on a file that
        has no name any more keeps nobody out, so that another one is taken.
        """
        while True:
            is_left = self._was_there()
            try:
                if is_left:
                    check_left_by_this_user(self.folder, (self.data, self.work))
                lock = _opened_itself(self._lock)
            except FileNotFoundError:
                continue  # the run that held it has removed it meanwhile
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(lock.fileno()), self._lock.lstat()):
                        return lock
            except BlockingIOError:
                lock.close()
                raise ResumableError(
                    "another preparation is at work here", where=str(self.folder), remedy="wait for its end"
                ) from None
            lock.close()

    def _was_there(self) -> bool:
        """Make the folder, unless something of its name is there: then True."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.folder.mkdir(mode=0o700)
        except FileExistsError:
            return True
        return False

    def _not_written(self, error: OSError) -> FlagPerfError:
        return FlagPerfError(
            f"cannot be written: {error.strerror}",
            where=str(self.folder),
            remedy="name an --out in a folder that you may write to: the data set is built beside it",
        )

    def _remove(self) -> None:
        """Remove the folder, its lock last: what is removed is nobody else's yet. What cannot be removed is told."""
        try:
            for path in (self.data, self.work):
                if os.path.lexists(path):
                    shutil.rmtree(path)  # of a link it raises
            self._lock.unlink()
        except OSError as error:
            print(f"{self.folder}: cannot be removed, so it stays: {error}", file=sys.stderr)
            return
        with suppress(OSError):  # another run has begun anew here
            self.folder.rmdir()

    def _tell(self) -> None:
        """Say where this is built, and what other runs left there."""
        goes_on = (self.work / "finished_steps").is_dir()
        print(f"{'going on' if goes_on else 'building'} in {self.folder}", file=sys.stderr)
        for path in sorted(self.target.parent.iterdir()):
            if path.name.startswith(f"{self.target.name}.partial-") and path != self.folder:
                print(
                    f"{path}: left by other parameters or text; remove it if nobody needs it", file=sys.stderr
                )


def _opened_itself(path: Path) -> FileIO:
    """The file that has this name itself, made where there is none; a pipe is not waited for."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return FileIO(os.open(path, flags, 0o600), "wb")


def _synchronise(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
