"""Load vendor and case files by path.

Their folders are not packages (`bert-pytorch` cannot be one, and `nvidia/__init__.py` would hide
pip's `nvidia.*` packages), so they are loaded from where they lie and `sys.path` is left alone.
"""

from __future__ import annotations

import importlib.util
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from utils.errors import FlagPerfError

# Bytes: what is larger is no text that somebody wrote, and would fill the memory of who parses it.
LARGEST_CODE = 2**24


def load_module(path: Path, name: str, provided: Mapping[str, Any] | None = None) -> ModuleType:
    """Execute the Python file `path` as the module `name`; its siblings can be imported by name.

    Args:
        provided: names that the module has before its first line.

    Raises:
        FlagPerfError: there is no such file. What the file itself raises is passed on.
    """
    missing = why_no_file(path)
    if missing:
        raise FlagPerfError(missing, where=str(path))
    spec = importlib.util.spec_from_file_location(name, path)
    with _siblings_of(path.parent):
        return _execute(spec, path, provided)


def why_no_file(path: Path) -> str:
    """Why `path` is no file of code or prose that could be read; empty where it is one."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "is a link that leads nowhere" if path.is_symlink() else "there is no such file"
    except OSError as error:
        return f"cannot be reached: {error.strerror}"
    if stat.S_ISREG(status.st_mode):
        return f"is larger than {LARGEST_CODE >> 20} MiB" if status.st_size > LARGEST_CODE else ""
    return "is a folder, not a file" if stat.S_ISDIR(status.st_mode) else "is no regular file"


def code_name(path: Path) -> str:
    """What Python calls the file `path` in the code that it made of it, and so in its tracebacks."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    return str(path) if spec is None or spec.origin is None else spec.origin


def load_package(folder: Path, name: str) -> ModuleType:
    """Load `folder` as the package `name`, so that `from .model import ...` works inside it.

    Raises:
        FlagPerfError: the folder has no `__init__.py`.
    """
    init = folder / "__init__.py"
    if not init.is_file():
        raise FlagPerfError("no such file", where=str(init))
    spec = importlib.util.spec_from_file_location(name, init, submodule_search_locations=[str(folder)])
    return _execute(spec, init)


def _execute(spec: ModuleSpec | None, path: Path, provided: Mapping[str, Any] | None = None) -> ModuleType:
    if spec is None or spec.loader is None:
        raise FlagPerfError("not a Python file", where=str(path), remedy="give it the ending .py")
    module = importlib.util.module_from_spec(spec)
    vars(module).update(provided or {})
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


class _SiblingFinder:
    """Finds modules in one folder, after everything that is installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, [self.folder]) if path is None else None


@contextmanager
def _siblings_of(folder: Path) -> Iterator[None]:
    """While a file of `folder` is executed, let it import its siblings; forget them afterwards.

    Two vendors both have a `config_common.py`: neither may find the other's. No bytecode is kept: of a file that
    is written twice within a second, Python would run the first if both are of one length.
    """
    finder = _SiblingFinder(folder)
    before = set(sys.modules)
    dont_write_before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.dont_write_bytecode = dont_write_before
        sys.meta_path.remove(finder)
        for name in set(sys.modules) - before:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin and Path(origin).parent == folder:
                del sys.modules[name]
