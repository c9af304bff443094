"""What decides a data set, and whether it is made already: common to the preparations of all cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from utils import manifest
from utils.errors import FlagPerfError, Problem, ProblemsError
from utils.manifest import FileEntry
from utils.preparation.progress import Progress
from utils.preparation.refusals import refuse_other_recipe
from utils.preparation.workshop import Done


def fingerprints(paths: Sequence[Path], workers: int) -> list[str]:
    """Name and SHA-256 of each file; where it stands does not matter."""

    def fingerprint(path: Path) -> str:
        try:
            return f"{path.name} sha256:{manifest.sha256_of(path)}"
        except OSError as error:
            raise FlagPerfError(
                f"cannot be read: {error.strerror}", where=str(path), remedy="give a file that can be read"
            ) from None

    progress, found = Progress("check the input", len(paths)), []
    with ThreadPoolExecutor(workers) as pool:
        for result in pool.map(fingerprint, paths):
            found.append(result)
            progress.advance()
    progress.close()
    return found


def out_of_range(parameters: object, ranges: Mapping[str, tuple[float, float]]) -> Iterator[Problem]:
    """A problem for each attribute of `parameters` that is not within its range, as a command line option."""
    for name, (least, most) in ranges.items():
        value = getattr(parameters, name)
        if not least <= value <= most:
            option = "--" + name.replace("_", "-")
            yield Problem("command line", option, str(value), "out of range", f"{least} to {most}")


def already_made(out: Path, recipe: Mapping[str, Any], workers: int) -> manifest.Manifest | None:
    """The finished, intact data set of this recipe, if `out` holds it; None if there is none or it is damaged.

    Raises:
        FlagPerfError: `out` holds a data set of another recipe, or files that belong to none.
    """
    if not (out / manifest.MANIFEST_NAME).exists():
        return None
    made = manifest.read(out)
    refuse_other_recipe(
        made.parameters, recipe, where=str(out), remedy="give another --out, or remove this directory"
    )
    problems = manifest.verify(out, workers=workers)
    unexpected = [problem for problem in problems if problem.message.startswith("unexpected")]
    if unexpected:  # making the set again would not mend this
        raise ProblemsError(unexpected)
    return None if problems else made


def added_up(done: Sequence[Done], prefix: str = "") -> dict[str, Any]:
    """Each fact of like steps, added up."""
    return {prefix + name: sum(step.facts[name] for step in done) for name in done[0].facts}


def files_of(done: Iterable[Done]) -> tuple[FileEntry, ...]:
    """Every file that the steps made, by path."""
    return tuple(sorted((entry for step in done for entry in step.files), key=lambda entry: entry.path))
