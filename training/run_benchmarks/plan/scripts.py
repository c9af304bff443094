"""What a case's own training script wants to import, read without executing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

DRIVER = "driver"


def wants_own_driver(script: Path) -> bool:
    """Whether `script` imports a top-level package `driver` that it looks for with a `sys.path` of its own.

    Existing FlagPerf cases append `benchmarks/` to `sys.path` and import `driver` from there. False for a
    file that is not Python: its own interpreter says so better.
    """
    try:
        tree = ast.parse(script.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return False
    edits_path = any(
        isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.path" for node in ast.walk(tree)
    )
    return edits_path and DRIVER in _imported(tree)


def _imported(tree: ast.AST) -> Iterator[str]:
    """The top-level packages that are imported anywhere."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]
