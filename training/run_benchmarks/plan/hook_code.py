"""A vendor's `extern/` as far as it can be judged without its framework: it is read, never executed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.source_code import parsed, statements, text_of, words_in, written
from utils.errors import nearest
from utils.hook_form import HOOKS, call_of

Function = ast.FunctionDef | ast.AsyncFunctionDef


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


def functions_in(folder: Path, files: Iterable[str]) -> Iterator[tuple[str, Function]]:
    """The functions, but those of classes, of the files that are asked for hooks, each with its file's name.

    Args:
        files: as in `check_hook_code`, by which they were checked.
    """
    for file in sorted(file for file in files if file.endswith(".py") and "/" not in file):
        tree = parsed(folder / file, Problems())
        for node in statements(tree.body if tree else ()):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield file, node


def uncalled_functions(folder: Path, files: Sequence[str]) -> Iterator[tuple[str, Function]]:
    """Those that are no hook, and whose name no file of the folder holds a second time: nothing calls them."""
    code = (text_of(folder / file) for file in files if file.endswith(".py"))
    words = Counter(words_in("\n".join(code)))
    for file, function in functions_in(folder, files):
        # a decorator may hand it to whoever calls it
        is_private = function.name.startswith("_") or function.decorator_list
        if function.name not in HOOKS and not is_private and words[function.name] == 1:
            yield file, function


def _check_function(function: Function, path: Path, problems: Problems) -> None:
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
