"""A configuration file as it was read: its values, and the line on which each one stands."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.static_values import assignments, static_values
from utils.config_files import load_constants
from utils.errors import FlagPerfError
from utils.loading import why_no_file

# A name, and the keys and indices that lead into it.
Entry = tuple[str | int, ...]


@dataclass(frozen=True)
class ConfigFile:
    """One configuration file: `values` are the names that it sets to plain data.

    lines: where its assignments stand, and what is in their dicts and lists.
    below: the names that it leaves open and another file sets.
    """

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[Entry, int]
    below: Mapping[str, ConfigFile] = field(default_factory=dict)

    def over(self, below: ConfigFile, names: Collection[str]) -> ConfigFile:
        """This file and, for those of `names` that it leaves out or at None, {}, [] or "", what `below` sets."""
        taken = {
            name: value
            for name, value in below.values.items()
            if name in names and is_set(value) and not self.is_odd(name) and not is_set(self.values.get(name))
        }
        return replace(self, values={**self.values, **taken}, below=dict.fromkeys(taken, below))

    def where(self, *entry: str | int) -> str:
        """`file:line` of a setting or of what is in it; of what it is in, where its own line is not known."""
        if entry and entry[0] in self.below:
            return self.below[str(entry[0])].where(*entry)
        inner_first = (self.lines.get(entry[:depth]) for depth in range(len(entry), 0, -1))
        line = next((line for line in inner_first if line), None)
        return f"{self.path}:{line}" if line else str(self.path)

    def is_odd(self, name: str) -> bool:
        """Whether the file sets `name`, but to no plain data, e.g. a set or a Path: not the same as absent."""
        return name not in self.values and (name,) in self.lines


def is_set(value: Any) -> bool:
    """Whether a setting says something: None, {}, [] and "" leave it open."""
    return bool(value) or value is False


def subject(entry: Entry) -> str:
    """An entry as Python writes it: `CHIPS['X1']['source']`."""
    return str(entry[0]) + "".join(f"[{key!r}]" for key in entry[1:])


def read_config_file(
    path: Path, problems: Problems, remedy_if_missing: str, *, for_images: bool = False
) -> ConfigFile | None:
    """Execute the file `path`; None, with the reason among the problems, where that cannot be done.

    A file `for_images` may import modules that only the images have; it then gives what it can.
    """
    missing = why_no_file(path)
    if missing:
        problems.add(path, path.name, None, missing, remedy_if_missing)
        return None
    try:
        values = _values_of(path, for_images)
        text = path.read_text(encoding="utf-8")
    except FlagPerfError as error:
        problems.add(error.where or path, path.name, None, error.message, error.remedy or "correct the file")
        return None
    except UnicodeDecodeError as error:
        problems.add(path, path.name, None, f"is not UTF-8 ({error.reason})", "save the file as UTF-8")
        return None
    return ConfigFile(path, values, _find_lines(ast.parse(text), path, problems))


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


def _find_lines(tree: ast.Module, path: Path, problems: Problems) -> dict[Entry, int]:
    """The lines of the assignments in a Python file; a key that the same dict has had before is a problem."""
    lines: dict[Entry, int] = {}
    for name, line, value in assignments(tree.body):
        lines = {entry: line for entry, line in lines.items() if entry[0] != name}  # the last one counts
        lines[(name,)] = line
        for entry, entry_line in _entries((name,), value):
            if entry in lines:
                message = "stands twice; Python keeps the last one only"
                remedy = "remove one of the two, or correct its key"
                problems.add(f"{path}:{entry_line}", subject(entry), None, message, remedy)
            lines[entry] = entry_line
    return lines


def _entries(entry: Entry, value: ast.expr | None) -> Iterator[tuple[Entry, int]]:
    """What is in a dict or a list, to any depth."""
    items: list[tuple[ast.expr, Any, ast.expr]] = []
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        items = [(key, key.value, item) for key, item in pairs if isinstance(key, ast.Constant)]
    elif isinstance(value, (ast.List, ast.Tuple)):
        items = [(item, number, item) for number, item in enumerate(value.elts)]
    for node, key, item in items:
        yield (*entry, key), node.lineno
        yield from _entries((*entry, key), item)
