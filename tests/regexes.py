"""Every regular expression of a tree of Python files, and the texts that cost a careless one the most time.

Python's expressions try again from each place and take back what they took: one that may take the same character in
two ways, or that begins anew in a row of what it is after, needs the square of a text's length, or worse.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, AnyStr, Generic

# The place of `flags` among the arguments of a function of `re`; all take the expression first.
FLAGS = {
    "compile": 1,
    "search": 2,
    "match": 2,
    "fullmatch": 2,
    "findall": 2,
    "finditer": 2,
    "split": 3,
    "sub": 4,
    "subn": 4,
}
# What a method does: looks at one place, at the whole text, or from each place on.
METHODS = {name: name if name in ("match", "fullmatch") else "finditer" for name in FLAGS} | {
    "scanner": "finditer"
}
# In the place of what is not known before a function is called: by the variable's name, and of all others.
EXAMPLES: Mapping[str, object] = {"sign": b"[FLAGPERF] ", "follows": b"([a-z]+)", "most": 2**20}
SOMETHING = "a.b-c1"
OF_MAKERS = (
    "demo_data",
)  # what data that lie in the tree were made with: it reads no stranger's text any more


@dataclass(frozen=True)
class Use(Generic[AnyStr]):
    """An expression, and how it is used: `fullmatch`, `match` or `finditer`."""

    where: str
    pattern: re.Pattern[AnyStr]
    method: str

    def __str__(self) -> str:
        return f"{self.where}: {self.method} {self.pattern.pattern!r}"


class _Known(dict[str, Any]):
    """A module's names; a name that it lacks is an argument or a variable."""

    def __missing__(self, name: str) -> Any:
        return EXAMPLES.get(name, getattr(builtins, name, SOMETHING))


def uses_of(root: Path) -> list[Use[Any]]:
    """The expressions of all files below a folder, each once for every way in which it is used there.

    What a module holds in its constants is found in the module itself, as it may be put together; what a function
    writes is read from its code.
    """
    paths = [path for path in sorted(root.rglob("*.py")) if path.parent.name not in OF_MAKERS]
    trees = {path: ast.parse(path.read_bytes()) for path in paths}
    methods = _methods(trees.values())
    uses = [use for path, tree in trees.items() for use in _of_file(root, path, tree, methods)]
    return list({(use.pattern, use.method): use for use in reversed(uses)}.values())[::-1]


def _methods(trees: Iterable[ast.Module]) -> Mapping[str, set[str]]:
    """By the name of a compiled expression, in whichever module it is used: in which ways."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            owner = node.value
            name = (
                owner.attr
                if isinstance(owner, ast.Attribute)
                else owner.id
                if isinstance(owner, ast.Name)
                else ""
            )
            found[name].add(METHODS[node.attr])
    return found


def _of_file(root: Path, path: Path, tree: ast.Module, methods: Mapping[str, set[str]]) -> Iterator[Use[Any]]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _function(node)]
    if not calls:
        return
    module = _loaded(root, path)
    where = str(path.relative_to(root))
    known = _Known(vars(module))
    for call in calls:
        name = _function(call)
        text, flags = _argument(call, 0, "pattern"), _argument(call, FLAGS[name], "flags")
        pattern = re.compile(_value(text, known), _value(flags, known) if flags else 0)
        yield from (
            Use(f"{where}:{call.lineno}", pattern, method) for method in _ways(call, name, tree, methods)
        )
    for name, value in vars(module).items():
        for pattern, bound in _within(value):
            for method in {bound} - {""} or methods.get(name) or {"finditer"}:
                yield Use(where, pattern, method)


def _ways(call: ast.Call, name: str, tree: ast.Module, methods: Mapping[str, set[str]]) -> set[str]:
    if name != "compile":
        return {METHODS[name]}
    targets = [
        node.targets[0] for node in ast.walk(tree) if isinstance(node, ast.Assign) and node.value is call
    ]
    return next(
        (methods[each.id] for each in targets if isinstance(each, ast.Name) and methods.get(each.id)),
        {"finditer"},
    )


def _function(call: ast.Call) -> str:
    """The function of `re` that is called, or nothing."""
    function = call.func
    is_of_re = (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
    )
    return function.attr if is_of_re and function.attr in FLAGS else ""


def _argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    named = [each.value for each in call.keywords if each.arg == name]
    return next(iter([*call.args[place : place + 1], *named]), None)


def _value(expression: ast.expr, known: _Known) -> Any:
    return eval(compile(ast.Expression(expression), "<expression>", "eval"), known)  # noqa: S307


def _within(value: object) -> Iterator[tuple[re.Pattern[Any], str]]:
    """The expressions in a constant, each with its method where that alone is held."""
    if isinstance(value, re.Pattern):
        yield value, ""
    elif isinstance(getattr(value, "__self__", None), re.Pattern):
        yield value.__self__, METHODS[value.__name__]
    elif isinstance(value, Mapping):
        yield from (found for pair in value.items() for each in pair for found in _within(each))
    elif isinstance(value, (tuple, list, set, frozenset)):
        yield from (found for each in value for found in _within(each))


def _loaded(root: Path, path: Path) -> ModuleType:
    """The module; an empty one where a package is not installed that a case alone needs: its code says enough."""
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    try:
        if name.startswith(("utils.", "run_benchmarks.", "benchmarks.")) and "-" not in name:
            return importlib.import_module(name.removesuffix(".__init__"))
        spec = importlib.util.spec_from_file_location(name.replace(".", "_"), path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except ModuleNotFoundError:
        return ModuleType(name)
