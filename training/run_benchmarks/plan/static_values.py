"""Read settings off a Python file that cannot be executed here.

Vendors' config files import what only their images have (`import torch`, `from apex import ...`), and
the controller has no framework. What does not depend on such a module is read all the same.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from utils.parameters import UNKNOWN

# Literals, names set before and arithmetic on them: no calls and no attributes.
_PLAIN_NODES = (
    ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple, ast.Dict, ast.BinOp, ast.operator, ast.UnaryOp,
    ast.unaryop, ast.BoolOp, ast.boolop, ast.Compare, ast.cmpop, ast.IfExp, ast.Subscript,
)  # fmt: skip


def static_values(path: Path) -> dict[str, Any]:
    """The settings of `path` as far as they can be had without executing it; UNKNOWN where that is not far.

    Raises:
        OSError: a sibling that the file imports everything from does not exist.
    """
    values: dict[str, Any] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and [alias.name for alias in node.names] == ["*"]:
            values |= static_values(path.with_name(f"{node.module}.py"))
        for target, value in _assigned(node):
            plain = all(_is_plain(part, values) for part in ast.walk(value))
            values[target] = _evaluate(value, values) if plain else UNKNOWN
    return {name: value for name, value in values.items() if not name.startswith("_")}


def _assigned(node: ast.stmt) -> list[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        return [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        return [(node.target.id, node.value)]
    return []


def _is_plain(node: ast.AST, values: dict[str, Any]) -> bool:
    if isinstance(node, ast.Name):
        return values.get(node.id, UNKNOWN) is not UNKNOWN
    return isinstance(node, _PLAIN_NODES)


def _evaluate(value: ast.expr, values: dict[str, Any]) -> Any:
    code = compile(ast.Expression(value), "setting", "eval")
    try:
        return eval(code, {"__builtins__": {}}, dict(values))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return UNKNOWN  # in the image the file fails by itself
