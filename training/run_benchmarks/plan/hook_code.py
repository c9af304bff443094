"""A vendor's `extern/` as far as it can be judged without its framework: it is read, never executed."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.source_code import parsed, statements, written
from utils.errors import nearest
from utils.hook_form import HOOKS, call_of


def check_hook_code(folder: Path, files: Iterable[str], problems: Problems) -> None:
    """Note what every rank would refuse of the vendor's `folder`.

    Args:
        files: all that lie there, by their paths below it; those at its top are asked for hooks.
    """
    defined_in: dict[str, Path] = {}
    for path in (folder / file for file in files if file.endswith(".py")):
        tree = parsed(path, problems)
        if tree is None or path.parent != folder:
            continue
        for node in statements(tree.body):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                _check_function(node, path, problems)
                other = defined_in.setdefault(node.name, path)
                if node.name in HOOKS and other != path:
                    message, where = f"is defined in {other} too", f"{path}:{node.lineno}"
                    problems.add(where, node.name, None, message, "remove one of the two")


def _check_function(function: ast.FunctionDef | ast.AsyncFunctionDef, path: Path, problems: Problems) -> None:
    name, where = function.name, f"{path}:{function.lineno}"
    if name not in HOOKS:
        hint = "" if name.startswith("_") else nearest(name, HOOKS)
        if hint:
            remedy = f"{hint} A function that is no hook begins with an underscore"
            problems.add(where, name, None, "is no hook, and nothing would call it", remedy)
        return
    if isinstance(function, ast.AsyncFunctionDef):
        problems.add(where, name, None, "is async; the driver calls it like any function", "write def")
    elif not function.decorator_list and not _takes(function.args, len(HOOKS[name].arguments)):
        own = f"{name}({written(function.args)})"
        problems.add(where, name, own, f"is called as {call_of(name)}", f"write def {call_of(name)}:")
    if HOOKS[name].returns and not _returns(function):
        problems.add(where, name, None, "returns nothing", f"return {', '.join(HOOKS[name].returns)}")


def _takes(arguments: ast.arguments, count: int) -> bool:
    """Whether a function with these arguments can be called with `count` of them by position."""
    by_position = len(arguments.posonlyargs) + len(arguments.args)
    needed = by_position - len(arguments.defaults)
    by_name_alone = any(default is None for default in arguments.kw_defaults)
    return needed <= count and (by_position >= count or arguments.vararg is not None) and not by_name_alone


def _returns(function: ast.AST) -> bool:
    """Whether there is a `return` with a value in it: one that a function within it has counts too."""
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))
