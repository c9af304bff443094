"""Modules of benches/, which is no package, for tests."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHES = Path(__file__).resolve().parents[1] / "benches"


def imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """A fixture's value: imports a module of benches/ by its name; all of them are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(BENCHES))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == BENCHES:
            del sys.modules[name]
