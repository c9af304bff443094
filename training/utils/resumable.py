"""Long file-making work in steps, so that a killed run goes on where it stopped.

A step writes its outputs under temporary names, renames them, and leaves a record (sizes, SHA-256,
facts found). A later run with the same recipe skips each step whose outputs are still what its record
says. The workshop (a hidden folder in the output directory) is locked by one run at a time, and removed
when the work is finished.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from utils.errors import FlagPerfError
from utils.manifest import FileEntry, describe

Facts = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """A finished step: the files it made and what it found out."""

    facts: Facts
    files: tuple[FileEntry, ...]


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """A temporary name beside `target`: renamed to it at a clean end, removed after an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())  # a crash of the machine must not leave a renamed, empty file
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


class Workshop:
    """The records of the steps done so far for the output directory `out`."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = out / ".prepare"

    @contextmanager
    def opened(self, recipe: Mapping[str, Any]) -> Iterator[Workshop]:
        """Hold the lock; FlagPerfError if another run holds it or was begun with another `recipe`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FlagPerfError(
                    "another preparation is at work here", where=str(self.out), remedy="wait for its end"
                ) from None
            self._check_recipe(recipe)
            yield self

    def step(self, name: str, outputs: Sequence[Path], make: Callable[[], Facts]) -> Done:
        """Step `name`: from its record if its outputs are intact, else by running `make`."""
        record = self.folder / "done" / f"{name}.json"
        done = self._recorded(record)
        if done is None:
            facts = make()
            paths = [path.relative_to(self.out).as_posix() for path in outputs]
            done = Done(facts, describe(self.out, paths))
            _write_json(record, {"facts": facts, "files": [asdict(entry) for entry in done.files]})
        return done

    def clear(self) -> None:
        """Remove the workshop: the work is finished."""
        shutil.rmtree(self.folder)

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
        wanted = json.loads(json.dumps(recipe))
        if path.exists():
            begun = json.loads(path.read_text(encoding="utf-8"))
            refuse_other_recipe(begun, wanted, str(self.out))
        else:
            _write_json(path, wanted)


def _write_json(path: Path, content: Any) -> None:
    with unfinished(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")


def refuse_other_recipe(begun: Mapping[str, Any], wanted: Mapping[str, Any], where: str) -> None:
    """FlagPerfError naming each parameter in which two recipes differ."""
    differences = [
        f"{key}: {begun.get(key)!r} there, {wanted.get(key)!r} asked"
        for key in sorted({*begun, *wanted})
        if begun.get(key) != wanted.get(key)
    ]
    if differences:
        raise FlagPerfError(
            "this directory holds data prepared otherwise: " + "; ".join(differences),
            where=where,
            remedy="give another --out, or remove this directory",
        )
