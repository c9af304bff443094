"""What imports laid down: written before they begin, so that exactly that can be taken away again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from run_benchmarks.reading import Record, parsed, read_object
from run_benchmarks.results.round_result import write_json
from utils.code_files import digest_of_file
from utils.errors import FlagPerfError

# Beside the folders of training/, of which the hosts get those alone.
RECORD = "imported.json"
SCHEMA: Final = 2
SUFFIX = "_2022"  # of a name that is taken here
IMAGES = "docker_image"


@dataclass(frozen=True)
class Imports(Record):
    """All that was laid down: path below training/ -> SHA-256, and the folders that were made for it."""

    files: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    schema: Literal[2] = SCHEMA

    def above(self) -> frozenset[str]:
        """The folders of what was laid down, whoever made them."""
        return frozenset(parent.as_posix() for name in self.files for parent in PurePosixPath(name).parents)


def read_imports(training_dir: Path) -> Imports:
    """What was laid down so far.

    Raises:
        FlagPerfError: the record cannot be read, or names what lies elsewhere.
    """
    path = training_dir / RECORD
    content = read_object(path)
    imports = Imports() if content is None else parsed(Imports, content, str(path))
    strays = [name for name in (*imports.files, *imports.folders) if not _is_inside(training_dir, name)]
    if strays:
        message = f"names what is not below {training_dir}: {strays[0]!r}"
        raise FlagPerfError(
            message, where=str(path), remedy="see who wrote it; what it names, remove by hand"
        )
    return imports


def write_imports(training_dir: Path, imports: Imports) -> None:
    """Keep the record."""
    write_json(training_dir / RECORD, imports.as_dict())


def take_away(training_dir: Path) -> tuple[int, list[str]]:
    """Remove what imports laid down; how many files went, and which are kept: they were changed since.

    Raises:
        FlagPerfError: as `read_imports`.
    """
    imports, removed, kept = read_imports(training_dir), 0, []
    for name, digest in imports.files.items():
        path = training_dir / name
        if not path.is_file() or path.is_symlink():
            continue
        if digest_of_file(path) == digest:
            path.unlink()
            removed += 1
        else:
            kept.append(name)
    _remove_empty(training_dir / folder for folder in sorted(imports.folders, reverse=True))
    (training_dir / RECORD).unlink(missing_ok=True)
    return removed, kept


def _remove_empty(folders: Iterable[Path]) -> None:
    """Folders before those that hold them. What Python compiled of the files that are gone goes with them."""
    for folder in folders:
        with suppress(OSError):  # something else lies in it, or it is gone
            for compiled in (folder / "__pycache__").glob("*.pyc"):
                if not (folder / f"{compiled.name.partition('.')[0]}.py").exists():
                    compiled.unlink()
            with suppress(OSError):
                (folder / "__pycache__").rmdir()
            folder.rmdir()


def _is_inside(training_dir: Path, name: str) -> bool:
    """Whether a name leads below the folder, and not by a link to elsewhere."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        return False
    return (training_dir / path).parent.resolve().is_relative_to(training_dir.resolve())
