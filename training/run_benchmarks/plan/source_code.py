"""Python files that are read and never executed, for what they import may be in the images alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from run_benchmarks.plan.problems import Problems
from utils.config_files import failure_in
from utils.loading import why_no_file


def parsed(path: Path, problems: Problems) -> ast.Module | None:
    """The file's syntax tree; None, with the reason among the problems, where it is no file, or not Python."""
    if missing := why_no_file(path):  # a pipe would be waited for
        problems.add(path, path.name, None, missing, "remove it, or make it a Python file")
        return None
    try:
        return ast.parse(path.read_bytes(), str(path))
    except Exception as error:  # bytes that are no Python can be refused in many ways
        failure = failure_in(path, error)
        problems.add(failure.where, path.name, None, failure.message, failure.remedy)
    return None


def statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The statements outside of functions and classes, in the order in which they stand.

    Each `elif` stands a level deeper, without a limit, so that they are kept in a list and not on Python's stack.
    """
    waiting = list(reversed(body))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            parts = (getattr(node, field, []) for field in ("body", "orelse", "finalbody"))
            waiting += reversed([each for part in parts for each in part])


def written(node: ast.AST) -> str:
    """The code of `node`; of what is nested too deep for Python to write it, three dots."""
    try:
        return ast.unparse(node)
    except RecursionError:
        return "..."


def text_of(path: Path) -> str:
    """What stands in a file; nothing where it cannot be read, which other checks say."""
    try:
        return "" if why_no_file(path) else path.read_text("utf-8", "replace")
    except OSError:
        return ""


def words_in(text: str) -> list[str]:
    """The words of a program: names, and parts of names in texts."""
    return re.findall(r"\w+", text)
