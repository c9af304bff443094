"""A configuration file as it was read: its values, and the line on which each one stands."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.static_values import static_values
from utils.config_files import load_constants
from utils.errors import FlagPerfError

# A name, and the keys and indices that lead into it.
Entry = tuple[str | int, ...]


@dataclass(frozen=True)
class Lines:
    """Where things stand in a Python file.

    of: path -> line: (name,) of an assignment, and (name, key or index, ...) of what is in its dicts and lists.
    repeated: the paths, with their lines, of keys that the same dict has had before.
    """

    of: Mapping[Entry, int]
    repeated: tuple[tuple[Entry, int], ...]


@dataclass(frozen=True)
class ConfigFile:
    """One configuration file: `values` are the names that it sets to plain data."""

    path: Path
    values: Mapping[str, Any]
    lines: Lines

    def where(self, *entry: str | int) -> str:
        """`file:line` of a setting or of what is in it; of what it is in, where its own line is not known."""
        inner_first = (self.lines.of.get(entry[:depth]) for depth in range(len(entry), 0, -1))
        line = next((line for line in inner_first if line), None)
        return f"{self.path}:{line}" if line else str(self.path)

    def is_odd(self, name: str) -> bool:
        """Whether the file sets `name`, but to no plain data, e.g. a set or a Path: not the same as absent."""
        return name not in self.values and (name,) in self.lines.of


def subject(entry: Entry) -> str:
    """An entry as Python writes it: `CHIPS['X1']['source']`."""
    return str(entry[0]) + "".join(f"[{key!r}]" for key in entry[1:])


def read_config_file(
    path: Path, problems: Problems, remedy_if_missing: str, *, for_images: bool = False
) -> ConfigFile | None:
    """Execute the file `path`; None, with the reason among the problems, where that cannot be done.

    A file `for_images` may import modules that only the images have; it then gives what it can.
    """
    if not path.is_file():
        problems.add(path, path.name, None, "there is no such file", remedy_if_missing)
        return None
    try:
        values = _values_of(path, for_images)
        lines = find_lines(path.read_text(encoding="utf-8"))
    except (FlagPerfError, OSError, UnicodeDecodeError) as error:
        _add_unreadable(path, error, problems)
        return None
    file = ConfigFile(path, values, lines)
    _report_repeated(file, problems)
    return file


def _values_of(path: Path, for_images: bool) -> dict[str, Any]:
    try:
        return load_constants(path)
    except FlagPerfError as error:
        if not for_images or not isinstance(error.__cause__, ImportError):
            raise
        try:
            return static_values(path)
        except OSError:  # it is a sibling that is missing
            raise error from error.__cause__


def find_lines(text: str) -> Lines:
    """The lines of the assignments in a Python file that is known to be free of syntax errors."""
    lines: dict[Entry, int] = {}
    repeated: list[tuple[Entry, int]] = []
    for name, line, value in _assignments(ast.parse(text)):
        lines = {entry: line for entry, line in lines.items() if entry[0] != name}  # the last one counts
        lines[(name,)] = line
        for entry, entry_line in _entries((name,), value):
            if entry in lines:
                repeated.append((entry, entry_line))
            lines[entry] = entry_line
    return Lines(lines, tuple(repeated))


def _assignments(tree: ast.Module) -> Iterator[tuple[str, int, ast.expr | None]]:
    """(name, line, value) of the assignments outside of functions, in the order in which they stand."""
    for node in _statements(tree.body):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name in _names_in(target):
                    yield name, node.lineno, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.lineno, node.value


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, field, []))


def _names_in(target: ast.expr) -> Iterator[str]:
    return (node.id for node in ast.walk(target) if isinstance(node, ast.Name))


def _entries(entry: Entry, value: ast.expr | None) -> Iterator[tuple[Entry, int]]:
    """What is in a dict or a list, to any depth."""
    parts: Iterable[tuple[ast.expr | None, str | int | None, ast.expr]] = ()
    if isinstance(value, ast.Dict):
        parts = ((key, _literal(key), item) for key, item in zip(value.keys, value.values, strict=True))
    elif isinstance(value, (ast.List, ast.Tuple)):
        parts = ((item, number, item) for number, item in enumerate(value.elts))
    for node, key, item in parts:
        if node is not None and key is not None:
            yield (*entry, key), node.lineno
            yield from _entries((*entry, key), item)


def _literal(key: ast.expr | None) -> str | int | None:
    value = key.value if isinstance(key, ast.Constant) else None
    return value if isinstance(value, (str, int)) else None


def _add_unreadable(path: Path, error: Exception, problems: Problems) -> None:
    if isinstance(error, FlagPerfError):
        problems.add(error.where or path, path.name, None, error.message, error.remedy or "correct the file")
    elif isinstance(error, UnicodeDecodeError):
        problems.add(path, path.name, None, f"is not UTF-8 ({error.reason})", "save the file as UTF-8")
    else:
        remedy = "make the file readable for the user who runs this"
        problems.add(path, path.name, None, f"cannot be read: {error}", remedy)


def _report_repeated(file: ConfigFile, problems: Problems) -> None:
    for entry, line in file.lines.repeated:
        problems.add(
            f"{file.path}:{line}", subject(entry), None,
            "stands twice; Python keeps the last one only", "remove one of the two, or correct its key",
        )  # fmt: skip
