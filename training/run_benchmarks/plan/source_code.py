"""Python files that are read and never executed, for what they import may be in the images alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from run_benchmarks.plan.problems import Problems


def parsed(path: Path, problems: Problems) -> ast.Module | None:
    """The file's syntax tree; None, with the reason among the problems, where it is not Python."""
    try:
        return ast.parse(path.read_bytes())
    except SyntaxError as error:
        where, shown = f"{path}:{error.lineno}" if error.lineno else path, (error.text or "").strip()
        message = f"syntax error: {error.msg}" + (f": {shown}" if shown else "")
        problems.add(where, path.name, None, message, "correct this line")
    except (OSError, ValueError) as error:  # it cannot be read, or has a zero byte in it
        problems.add(path, path.name, None, f"cannot be read: {error}", "correct the file")
    return None


def statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The statements outside of functions and classes, in the order in which they stand."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, field, []))
