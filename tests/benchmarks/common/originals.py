"""Running the originals' code on a CPU: stand-ins for what it imports and the figures do not need."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock


class _StandIn(ModuleType):
    """A module that has whatever is asked of it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        is_wanted = any(f"{name}.".startswith(f"{own}.") for own in self.names)
        return importlib.machinery.ModuleSpec(name, self) if is_wanted else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def stand_in_for(names: Sequence[str]) -> None:
    """Let packages, or parts of one, that are not there be imported: they are not used for what is computed."""
    sys.meta_path.insert(0, _Finder(names))


def head_of(checkout: Path) -> str:
    """The commit of a git checkout."""
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def write(path: Path, provenance: dict[str, Any], figures: dict[str, Any]) -> None:
    """The figures as JSON, with where they come from."""
    content = {"provenance": provenance, **figures}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
