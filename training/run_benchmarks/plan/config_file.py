"""A configuration file as it was read: its values, and the line on which each one stands."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

from run_benchmarks.plan.apart import apart
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.secrets import NO_SECRETS, Secrets, marks_in, secrets_of
from run_benchmarks.plan.static_values import assignments, static_values
from utils.config_files import constants_of, load_config
from utils.errors import FlagPerfError
from utils.loading import why_no_file
from utils.parameters import UNKNOWN
from utils.plain_data import exact

# A name, and the keys and indices that lead into it.
Entry = tuple[str | int, ...]
# Names that a file's code has without importing them.
Provided = Mapping[str, Callable[..., Any]]
NOTHING: Provided = {}


@dataclass(frozen=True)
class ConfigFile:
    """One configuration file: `values` are the names that it sets to plain data.

    lines: where its assignments stand, and what is in their dicts and lists.
    functions: the names of its functions.
    below: the names that another file sets in its place.
    """

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[Entry, int]
    functions: frozenset[str] = frozenset()
    below: Mapping[str, ConfigFile] = field(default_factory=dict)

    def over(self, below: ConfigFile, names: Collection[str]) -> ConfigFile:
        """This file and, for those of `names` that it leaves out or at None, {}, [] or "", what `below` sets."""
        taken = {
            name: value
            for name, value in below.values.items()
            if name in names and is_set(value) and not self.is_odd(name) and not is_set(self.values.get(name))
        }
        return replace(
            self, values={**self.values, **taken}, below={**self.below, **dict.fromkeys(taken, below)}
        )

    def under(self, above: ConfigFile) -> ConfigFile:
        """This file with what `above` sets in the place of its own."""
        below = {**self.below, **dict.fromkeys(above.values, above)}
        return replace(self, values={**self.values, **above.values}, below=below)

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
    path: Path,
    problems: Problems,
    remedy_if_missing: str,
    *,
    for_images: bool = False,
    provided: Provided = NOTHING,
) -> ConfigFile | None:
    """Execute the file `path`; None, with the reason among the problems, where that cannot be done.

    A file `for_images` may import modules that only the images have; it then gives what it can.
    The functions that are `provided` it may call without importing them.
    """
    missing = why_no_file(path)
    if missing:
        problems.add(path, path.name, None, missing, remedy_if_missing)
        return None
    try:
        values, functions, lines, doubles = apart(partial(_content_of, path, for_images, provided), path)
    except FlagPerfError as error:
        problems.add(error.where or path, path.name, None, error.message, error.remedy or "correct the file")
        return None
    for entry, line in doubles:
        message = "stands twice; Python keeps the last one only"
        remedy = "remove one of the two, or correct its key"
        problems.add(f"{path}:{line}", subject(entry), None, message, remedy)
    return ConfigFile(path, _received(values), lines, frozenset(functions))


def read_leniently(path: Path) -> dict[str, Any]:
    """What can be had of the values of a file that need not be valid, nor there."""
    try:
        return _received(apart(partial(_executed, path, (BaseException,)), path)[0])
    except FlagPerfError:
        return {}


# What the process that executes a file sends: its names, each with its value in a tuple, which is empty for UNKNOWN.
_Sent = list[tuple[str, tuple[Any, ...]]]


def _received(values: _Sent) -> dict[str, Any]:
    return {name: value[0] if value else UNKNOWN for name, value in values}


def _content_of(
    path: Path, for_images: bool, provided: Provided
) -> tuple[_Sent, list[str], dict[Entry, int], list[tuple[Entry, int]]]:
    """The file's values and functions, the lines of its assignments, and the keys that the same dict has had before."""
    executed = _executed(path, (ImportError,) if for_images else (), provided)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 ({error.reason})"
        raise FlagPerfError(message, where=str(path), remedy="save the file as UTF-8") from error
    return (*executed, *_find_lines(ast.parse(text)))


def _executed(
    path: Path, forgiven: tuple[type[BaseException], ...], provided: Provided = NOTHING
) -> tuple[_Sent, list[str]]:
    """Values and functions; where the file fails by a `forgiven` exception, what can be had without executing it."""
    functions = []
    try:
        module = load_config(path, provided)
        values = constants_of(module)
        own = {name: value for name, value in vars(module).items() if name not in provided}
        functions = [name for name, value in own.items() if isinstance(value, FunctionType)]
    except FlagPerfError as error:
        if not isinstance(error.__cause__, forgiven):
            error.message = _written_secrets(path).hide(error.message)
            raise
        try:
            values = static_values(path)
        except OSError:  # it is a sibling that is missing
            raise error from error.__cause__
    sent = [
        (name, () if value is UNKNOWN else (_sendable(path, name, value),)) for name, value in values.items()
    ]
    return sent, functions


def _written_secrets(path: Path) -> Secrets:
    """Those of a file that could not be executed: what it raised may say them."""
    try:
        values = static_values(path)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return NO_SECRETS
    return secrets_of(marks_in(values), values)


def _sendable(path: Path, name: str, value: Any) -> Any:
    try:
        return exact(value)
    except ValueError as error:
        raise FlagPerfError(
            f"{name} {error}", where=str(path), remedy=f"write another value for {name}"
        ) from None


def _find_lines(tree: ast.Module) -> tuple[dict[Entry, int], list[tuple[Entry, int]]]:
    """The lines of the assignments in a Python file, and the keys that the same dict has had before."""
    lines: dict[Entry, int] = {}
    doubles = []
    for name, line, value in assignments(tree.body):
        lines = {entry: line for entry, line in lines.items() if entry[0] != name}  # the last one counts
        lines[(name,)] = line
        for entry, entry_line in _entries((name,), value):
            if entry in lines:
                doubles.append((entry, entry_line))
            lines[entry] = entry_line
    return lines, doubles


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
