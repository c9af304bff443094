"""A case's class and a vendor's functions, loaded by path: the same for every framework."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from utils.case_form import CASE_CLASS, CASE_FILE, DOCS, lacking, missing_parts
from utils.errors import FlagPerfError, nearest
from utils.loading import load_module, load_package


def case_class(folder: Path) -> Any:
    """The class `Case` of the case folder's `case.py`.

    Raises:
        FlagPerfError: there is none.
    """
    path = folder / CASE_FILE
    if not path.is_file():
        raise FlagPerfError(
            "no such file", where=str(path), remedy=f"write the class {CASE_CLASS}; see {DOCS}"
        )
    package = load_package(folder, f"flagperf_case_{abs(hash(folder))}")
    module = importlib.import_module(f"{package.__name__}.{path.stem}")
    case = getattr(module, CASE_CLASS, None)
    if case is None:
        raise FlagPerfError(f"there is no class {CASE_CLASS}", where=str(path), remedy=f"see {DOCS}")
    return case


def refuse_incomplete(case: Any, kind: str, folder: Path) -> None:
    """A case's class has all that the driver asks of its kind.

    Raises:
        FlagPerfError: what it lacks.
    """
    missing = missing_parts(kind, partial(hasattr, case))
    if missing:
        raise FlagPerfError(lacking(missing, kind), where=str(folder / CASE_FILE), remedy=f"see {DOCS}")


def vendor_functions(folder: Path | None, names: Sequence[str]) -> dict[str, tuple[Path, Any]]:
    """The functions called `names` that the vendor's `folder` defines, with their files; none without a folder.

    Raises:
        FlagPerfError: one is defined twice, is no function, or a function's name is nearly that of a hook.
    """
    if folder is None or not folder.is_dir():
        return {}
    hooks: dict[str, tuple[Path, Any]] = {}
    for module in _modules_of(folder):
        _refuse_other_than_functions(names, module)
        for name, function in _own_functions(module):
            if name not in names:
                _refuse_misspelt(name, names, module)
            elif name in hooks:
                raise FlagPerfError(f"{name} is defined in {hooks[name][0]} too", where=str(module.__file__))
            else:
                hooks[name] = (Path(str(module.__file__)), function)
    return hooks


def _modules_of(folder: Path) -> list[ModuleType]:
    """A package, whose modules may import each other, or a folder of files that stand alone."""
    paths = sorted(path for path in folder.glob("*.py") if path.stem != "__init__")
    if not (folder / "__init__.py").is_file():
        return [load_module(path, f"flagperf_extern_{path.stem}") for path in paths]
    package = load_package(folder, f"flagperf_extern_{abs(hash(folder))}")
    return [package, *(importlib.import_module(f"{package.__name__}.{path.stem}") for path in paths)]


def _own_functions(module: ModuleType) -> list[tuple[str, Any]]:
    """The public functions that are written in this module, not those it imports."""
    return [
        (name, value)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and not name.startswith("_") and value.__module__ == module.__name__
    ]


def _refuse_other_than_functions(names: Sequence[str], module: ModuleType) -> None:
    """A class or a `functools.partial` of a hook's name would be passed over, and the driver's own called."""
    for name in names:
        value = vars(module).get(name)
        if callable(value) and not inspect.isfunction(value):
            raise FlagPerfError(
                f"the hook {name} is no function: {type(value).__name__}",
                where=str(module.__file__),
                remedy=f"write def {name}(...), which calls it",
            )


def _refuse_misspelt(name: str, names: Sequence[str], module: ModuleType) -> None:
    hint = nearest(name, names)
    if hint:
        raise FlagPerfError(
            f"{name} is not a hook: {hint}",
            where=str(module.__file__),
            remedy="name it as the hook, or begin its name with an underscore",
        )
