"""Python files that are read and never executed, for what they import may be in the images alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from run_benchmarks.plan.problems import Problems
from utils.config_files import failure_in


def parsed(path: Path, problems: Problems) -> ast.Module | None:
    """The file's syntax tree; None, with the reason among the problems, where it is not Python."""
    try:
        return ast.parse(path.read_bytes(), str(path))
    except Exception as error:  # bytes that are no Python can be refused in many ways
        failure = failure_in(path, error)
        problems.add(failure.where, path.name, None, failure.message, failure.remedy)
    return None


def statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The statements outside of functions and classes, in the order in which they stand."""
    for node in body:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, field, []))
