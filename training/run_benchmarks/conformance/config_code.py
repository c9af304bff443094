"""What a configuration's code shows: values that another machine would read otherwise, modules that are not here."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

from run_benchmarks.conformance.records import CheckResult, failed, not_proven
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.source_code import parsed

ENVIRONMENT = ("environ", "environb", "getenv")


def config_trouble(path: Path) -> Iterator[CheckResult]:
    """Of one configuration; what is no Python is named by who plans it."""
    tree = parsed(path, Problems())
    for node in ast.walk(tree) if tree else ():
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "name", "")
        if name in ENVIRONMENT and isinstance(node, (ast.Attribute, ast.alias)):
            detail = (
                "its values depend on the environment of whoever reads it: controller and ranks may differ"
            )
            yield failed(detail, f"{path}:{node.lineno}", "write the value itself")
        for module in _imported(node):
            if not ((path.parent / f"{module}.py").is_file() or _is_installed(module)):
                detail = f"{module} is not here: what the file sets was read without executing it"
                remedy = "let extern/ import it: configurations set values alone"
                yield not_proven(detail, f"{path}:{getattr(node, 'lineno', 1)}", remedy)


def _is_installed(module: str) -> bool:
    """Whether it can be imported here; `__main__`, which has no file of a module, can be everywhere."""
    return module in sys.modules or importlib.util.find_spec(module) is not None


def _imported(node: ast.AST) -> set[str]:
    """The modules of an import, by their first names."""
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [node.module]
    return {name.partition(".")[0] for name in names}
