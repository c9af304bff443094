"""What decides a data set, and whether it is made already: common to the preparations of all cases."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from benchmarks.common.preparation.bars import progress
from benchmarks.common.preparation.partial import Done
from utils import manifest
from utils.errors import FlagPerfError, Problem, ProblemsError
from utils.manifest import FileEntry


def parameter(default: float, help_text: str, least: float, most: float) -> Any:
    """A field of `RecipeParameters`: its default, what the command line says of it, and its range."""
    return field(default=default, metadata={"help": help_text, "least": least, "most": most})


@dataclass(frozen=True)
class RecipeParameters:
    """Everything that decides a case's samples, besides the files that are read.

    Equal parameters and equal input give equal files, whatever the number of workers.
    """

    def __post_init__(self) -> None:
        problems = list(self.problems())
        if problems:
            raise ProblemsError(problems)

    def recipe(self, workers: int) -> dict[str, Any]:
        """What decides the data set where nothing is read."""
        return asdict(self)

    def problems(self) -> Iterator[Problem]:
        """A problem for each value that is not within its range, as a command line option."""
        for each in fields(self):
            least, most = each.metadata["least"], each.metadata["most"]
            if not least <= getattr(self, each.name) <= most:
                yield self.out_of_range(each.name, least, most)

    def out_of_range(self, name: str, least: float, most: float) -> Problem:
        value = str(getattr(self, name))
        return Problem("command line", option_of(name), value, "out of range", f"{least} to {most}")


def option_of(name: str) -> str:
    """The command line option of a parameter."""
    return "--" + name.replace("_", "-")


def fingerprints(paths: Sequence[Path], workers: int) -> list[str]:
    """Name and SHA-256 of each file; where it stands does not matter.

    Raises:
        FlagPerfError: one cannot be read.
    """

    def fingerprint(path: Path) -> str:
        try:
            return f"{path.name} sha256:{manifest.sha256_of(path)}"
        except OSError as error:
            raise FlagPerfError(
                f"cannot be read: {error.strerror}", where=str(path), remedy="give a file that can be read"
            ) from None

    with ThreadPoolExecutor(workers) as pool:
        return list(progress("check the input", len(paths), pool.map(fingerprint, paths)))


def already_made(out: Path, recipe: Mapping[str, Any], workers: int) -> manifest.Manifest | None:
    """The intact data set of this recipe at `out`; None if `out` is free: absent, or an empty folder.

    Raises:
        FlagPerfError: `out` holds anything else, or a data set of another recipe, or one that is damaged.
    """
    if _is_free(out):
        return None
    if not (out / manifest.MANIFEST_NAME).exists():
        raise FlagPerfError(
            "is there already, and holds other files than a prepared data set",
            where=str(out),
            remedy="name a folder that is new or empty; checkpoints may be put into it afterwards",
        )
    made = manifest.read(out)
    _refuse_other_recipe(made.parameters, recipe, where=str(out))
    problems = manifest.verify(out, workers=workers)
    if problems:
        raise FlagPerfError(
            "\n".join(["this data set of the same recipe is damaged:", *map(str, problems)]),
            where=str(out),
            remedy="mend the files, or move the folder away and give the same command again",
        )
    return made


def added_up(done: Sequence[Done], prefix: str = "") -> dict[str, Any]:
    """Each fact of like steps, added up."""
    return {prefix + name: sum(step.facts[name] for step in done) for name in done[0].facts}


def files_of(done: Iterable[Done]) -> tuple[FileEntry, ...]:
    """Every file that the steps made, by path."""
    return tuple(sorted((entry for step in done for entry in step.files), key=lambda entry: entry.path))


def _is_free(out: Path) -> bool:
    if os.path.ismount(out):
        raise FlagPerfError(
            "is a mount point, which no folder can be renamed to",
            where=str(out),
            remedy="name a folder in it",
        )
    return not os.path.lexists(out) or (out.is_dir() and not any(out.iterdir()))


def _refuse_other_recipe(there: Mapping[str, Any], wanted: Mapping[str, Any], *, where: str) -> None:
    """FlagPerfError naming each parameter in which what is `there` differs from what is `wanted`."""
    differences = [
        f"{key} is {_shown(there.get(key))} there, {_shown(wanted.get(key))} asked"
        for key in sorted({*there, *wanted})
        if there.get(key) != wanted.get(key)
    ]
    if differences:
        message = "this directory holds data prepared otherwise: " + "; ".join(differences)
        raise FlagPerfError(message, where=where, remedy="give another --out, or move this directory away")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
