"""A configuration file as it was read: its values, and the line on which each one stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.static_values import static_values
from utils.config_files import load_constants
from utils.errors import FlagPerfError


@dataclass(frozen=True)
class Lines:
    """Where things stand in a Python file.

    names: top-level name -> line of its last assignment.
    entries: (name, key or item) -> line, for the keys of its dict or the items of its list.
    repeated: (name, key, line) of keys that the same dict has had before.
    """

    names: Mapping[str, int]
    entries: Mapping[tuple[str, str], int]
    repeated: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class Source:
    """One configuration file: `values` are the names that it sets to plain data."""

    path: Path
    values: Mapping[str, Any]
    lines: Lines

    def where(self, name: str = "", entry: str = "") -> str:
        """`file:line` of a setting or of an entry of it; the file alone where the line is not known."""
        line = self.lines.entries.get((name, entry)) or self.lines.names.get(name)
        return f"{self.path}:{line}" if line else str(self.path)


def read_source(
    path: Path, problems: Problems, remedy_if_missing: str, *, for_images: bool = False
) -> Source | None:
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
    source = Source(path, values, lines)
    _report_repeated(source, problems)
    return source


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
    names: dict[str, int] = {}
    entries: dict[tuple[str, str], int] = {}
    repeated: list[tuple[str, str, int]] = []
    for name, line, value in _assignments(ast.parse(text)):
        names[name] = line
        of_this: set[str] = set()
        for entry, entry_line in _entries(value):
            if entry in of_this and isinstance(value, ast.Dict):
                repeated.append((name, entry, entry_line))
            of_this.add(entry)
            entries[(name, entry)] = entry_line
    return Lines(names, entries, tuple(repeated))


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


def _entries(value: ast.expr | None) -> Iterator[tuple[str, int]]:
    parts: list[ast.expr | None] = []
    if isinstance(value, ast.Dict):
        parts = list(value.keys)
    elif isinstance(value, (ast.List, ast.Tuple)):
        parts = list(value.elts)
    for part in parts:
        if isinstance(part, ast.Constant):
            yield str(part.value), part.lineno


def _add_unreadable(path: Path, error: Exception, problems: Problems) -> None:
    if isinstance(error, FlagPerfError):
        problems.add(error.where or path, path.name, None, error.message, error.remedy or "correct the file")
    elif isinstance(error, UnicodeDecodeError):
        problems.add(path, path.name, None, f"is not UTF-8 ({error.reason})", "save the file as UTF-8")
    else:
        remedy = "make the file readable for the user who runs this"
        problems.add(path, path.name, None, f"cannot be read: {error}", remedy)


def _report_repeated(source: Source, problems: Problems) -> None:
    for name, key, line in source.lines.repeated:
        problems.add(
            f"{source.path}:{line}", f"{name}[{key!r}]", None,
            "stands twice; Python keeps the last one only", "remove one of the two, or correct its key",
        )  # fmt: skip
