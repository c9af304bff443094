"""Read a Python file of settings without executing it: where they stand and, if need be, their values.

Vendors' config files import what only their images have (`import torch`, `from apex import ...`), and
the controller has no framework. What does not depend on such a module is read all the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from run_benchmarks.plan.source_code import statements
from utils.config_files import is_plain
from utils.parameters import UNKNOWN


def static_values(path: Path) -> dict[str, Any]:
    """The settings of `path` as far as they can be had without executing it; UNKNOWN where that is not far.

    Raises:
        OSError: a sibling that the file imports everything from does not exist.
    """
    values: dict[str, Any] = {}
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.ImportFrom) and [alias.name for alias in node.names] == ["*"]:
            values |= static_values(path.with_name(f"{node.module}.py"))
        for name, _, value in assignments([node]):
            always = isinstance(node, (ast.Assign, ast.AnnAssign))
            values[name] = _evaluate(value, values) if value and always else UNKNOWN
    return {name: value for name, value in values.items() if not name.startswith("_")}


def assignments(body: Sequence[ast.AST]) -> Iterator[tuple[str, int, ast.expr | None]]:
    """(name, line, value) of the assignments outside of functions, in the order in which they stand.

    No value where several names are set at once.
    """
    for node in statements(body):
        if isinstance(node, ast.Assign) or (isinstance(node, ast.AnnAssign) and node.value):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                names = [name.id for name in ast.walk(target) if isinstance(name, ast.Name)]
                yield from (
                    (name, node.lineno, node.value if isinstance(target, ast.Name) else None)
                    for name in names
                )


def _evaluate(value: ast.expr, values: dict[str, Any]) -> Any:
    """Of literals, names set before and arithmetic on them; whatever else it needs is not there."""
    names = {name: earlier for name, earlier in values.items() if earlier is not UNKNOWN}
    try:
        code = compile(ast.Expression(value), "setting", "eval")
        result = eval(code, {"__builtins__": {}}, names)  # noqa: S307 - the file is the user's code anyway
    except Exception:  # in the image the file may fail by itself
        return UNKNOWN
    return result if is_plain(result) else UNKNOWN
