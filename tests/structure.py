"""Reads the imports of a `training/` tree and says where they break the rules of the design.

Every rule is a function from the modules to a list of `file: what is wrong`; an empty list is good.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOMS = ("run_benchmarks", "utils", "benchmarks")
# The longest prefix counts. A module may import its own floor and the floors below it.
FLOORS: Mapping[str, int] = {
    "run_benchmarks.run": 4,
    "run_benchmarks": 3,
    "run_benchmarks.results": 3,
    "run_benchmarks.report": 3,
    "run_benchmarks.history": 3,
    "run_benchmarks.exports": 3,
    "run_benchmarks.imports": 3,
    "run_benchmarks.commands": 2,
    "run_benchmarks.exit_code": 2,
    "run_benchmarks.full_disk": 2,
    "run_benchmarks.unforeseen": 2,
    "run_benchmarks.output": 2,
    "run_benchmarks.program": 2,
    "run_benchmarks.hosts": 2,
    "run_benchmarks.names": 2,
    "run_benchmarks.user_path": 2,
    "run_benchmarks.own_folder": 2,
    "run_benchmarks.run_log": 2,
    "run_benchmarks.host_log": 2,
    "run_benchmarks.journal": 2,
    "run_benchmarks.threads": 2,
    "run_benchmarks.meters": 2,
    "run_benchmarks.plan": 2,
    "run_benchmarks.reading": 2,
    "run_benchmarks.stages": 2,
    "run_benchmarks.transports": 2,
    "run_benchmarks.runtimes": 2,
    "run_benchmarks.images": 2,
    "run_benchmarks.frameworks": 2,
    "benchmarks": 3,
    "benchmarks.driver": 2,
    "benchmarks.common": 2,
    "utils": 1,
    "utils.errors": 0,
    "utils.records": 0,
}
# What the controller needs beside the standard library; no framework among it.
CONTROLLER_PACKAGES = frozenset(
    {
        "ahocorasick_rs",
        "ClusterShell",
        "asyncssh",
        "cryptography",
        "jinja2",
        "junitparser",
        "loguru",
        "markupsafe",
        "msgspec",
        "numpy",
        "prometheus_client",
        "pydantic",
        "rich",
        "scipy",
        "starlette",
        "uvicorn",
        "yaml",
    }
)
# What runs on every node beside the training, in an image that may be anybody's: one package in every image.
MONITOR_PACKAGES = frozenset({"psutil"})
# What a trial gives to the ranks' Python; the controller never imports it.
STANDIN, STANDIN_PACKAGES = "run_benchmarks.conformance.standin", frozenset({"torch"})
LONGEST_FILE = 300
ENTRY_POINTS = frozenset({"run_benchmarks/run.py", "benchmarks/driver/run_pretraining.py"})


@dataclass(frozen=True)
class Module:
    """A Python file of the tree. `name` is its dotted path below the tree, also where it cannot be imported."""

    root: Path
    path: Path

    @property
    def file(self) -> str:
        return self.path.relative_to(self.root).as_posix()

    @property
    def name(self) -> str:
        parts = Path(self.file).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @cached_property
    def imports(self) -> frozenset[str]:
        """Every dotted name that is imported anywhere in the file; relative ones are resolved."""
        return frozenset(self._imports())

    def _imports(self) -> Iterator[str]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = self._base(node)
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name.split(".") if self.path.name == "__init__.py" else self.name.split(".")[:-1]
        above = package[: len(package) - node.level + 1]
        return ".".join([*above, *([node.module] if node.module else [])])


def modules_of(root: Path) -> list[Module]:
    """Every Python file below `root` that belongs to the tree."""
    return [Module(root, path) for path in sorted(root.rglob("*.py")) if _is_ours(path.relative_to(root))]


def _is_ours(path: Path) -> bool:
    return path.parts[0] != "result" and not any(part.startswith(".") for part in path.parts)


def floor_of(name: str) -> int | None:
    """The floor of a module of the three rooms; None for anything else."""
    parts = name.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((FLOORS[prefix] for prefix in prefixes if prefix in FLOORS), None)


def _own_imports(module: Module, known: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in module.imports if name in known and name != module.name)


def upward(modules: Sequence[Module]) -> list[str]:
    """An import of a floor above the importer's own."""
    known = frozenset(module.name for module in modules)
    return [
        f"{module.file}: floor {floor_of(module.name)} imports {name} of floor {floor_of(name)}"
        for module in modules
        if module.room in ROOMS
        for name in sorted(_own_imports(module, known))
        if (floor_of(name) or 0) > (floor_of(module.name) or 0)
    ]


def circles(modules: Sequence[Module]) -> list[str]:
    """Modules that import each other, directly or through others."""
    known = frozenset(module.name for module in modules)
    graph = {module.name: _own_imports(module, known) for module in modules}
    reached = {name: _reachable(graph, name) for name in graph}
    return [
        f"{name}: imports {other}, which leads back to it"
        for name in sorted(graph)
        for other in sorted(graph[name])
        if name in reached[other]
    ]


def _reachable(graph: Mapping[str, frozenset[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(graph[name])
    return found


def foreign(modules: Sequence[Module]) -> list[str]:
    """An import that leads into a room that is loaded by path, or meets only through argv and files."""
    own = {*ROOMS, *(module.room for module in modules)}
    return [
        f"{module.file}: may not import {name}"
        for module in modules
        for name in sorted(module.imports)
        if name.partition(".")[0] in own and not _may_import(module, name)
    ]


def _may_import(module: Module, name: str) -> bool:
    room = name.partition(".")[0]
    if room == "utils":
        return True
    if module.room == "run_benchmarks":
        return room == "run_benchmarks"
    if module.room != "benchmarks":
        return _is_case_of_vendor(module) and room == "benchmarks"
    # The shared driver knows no case; a case knows the driver, what cases share, and its own model.
    allowed = {"driver", "common", module.name.split(".")[1]} if "." in module.name else set()
    return room == "benchmarks" and (name == "benchmarks" or name.split(".")[1] in allowed)


def _is_case_of_vendor(module: Module) -> bool:
    """`<vendor>/benchmarks/<model>/...` and `<vendor>/<model>-<framework>/extern/` hold code of cases."""
    parts = Path(module.file).parts
    return len(parts) > 2 and (parts[1] == "benchmarks" or parts[2] == "extern")


def packages(modules: Sequence[Module]) -> list[str]:
    """A package that a room does without: utils needs the standard library, the controller no framework."""
    standard = sys.stdlib_module_names | set(ROOMS)
    return [
        f"{module.file}: imports {name}"
        for module in modules
        for name in sorted({name.partition(".")[0] for name in module.imports})
        if module.room in ("utils", "run_benchmarks") and name not in standard | _packages_of(module)
    ]


def _packages_of(module: Module) -> frozenset[str]:
    if module.name == STANDIN or module.name.startswith(f"{STANDIN}."):
        return STANDIN_PACKAGES
    if module.room == "run_benchmarks":
        return CONTROLLER_PACKAGES
    return MONITOR_PACKAGES if module.name.startswith("utils.monitors.") else frozenset()


def star_imports(modules: Sequence[Module]) -> list[str]:
    """`from x import *` in the rooms; vendors' config files may share constants that way."""
    return [
        f"{module.file}:{node.lineno}: star import"
        for module in modules
        if module.room in ROOMS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
    ]


def shells(modules: Sequence[Module]) -> list[str]:
    """A command that goes through a shell as text."""
    return [
        f"{module.file}:{node.lineno}: a command as text"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and _goes_through_a_shell(node)
    ]


def _goes_through_a_shell(call: ast.Call) -> bool:
    shell = any(word.arg == "shell" and not _is_false(word.value) for word in call.keywords)
    name = ast.unparse(call.func)
    return shell or name in ("os.system", "os.popen") or name.endswith("create_subprocess_shell")


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def path_edits(modules: Sequence[Module]) -> list[str]:
    """A touch of `sys.path` outside the entry points."""
    return [
        f"{module.file}:{node.lineno}: sys.path"
        for module in modules
        if module.file not in ENTRY_POINTS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.path"
    ]


def vendor_packages(modules: Sequence[Module]) -> list[str]:
    """`<vendor>/__init__.py`: a package `nvidia` here would hide pip's `nvidia.*` packages."""
    return [
        f"{module.file}: vendor folders are not packages"
        for module in modules
        if module.room not in ROOMS and Path(module.file).parts[1:] == ("__init__.py",)
    ]


def long_files(modules: Sequence[Module]) -> list[str]:
    """A file that is too long to be read at once."""
    return [
        f"{module.file}: {lines} lines, {LONGEST_FILE} at most"
        for module in modules
        if (lines := len(module.text.splitlines())) > LONGEST_FILE
    ]


RULES: tuple[Callable[[Sequence[Module]], list[str]], ...] = (
    upward,
    circles,
    foreign,
    packages,
    star_imports,
    shells,
    path_edits,
    vendor_packages,
    long_files,
)
