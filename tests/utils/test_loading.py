"""Vendor and case files are loaded from where they lie, and nothing else changes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from utils.errors import FlagPerfError
from utils.loading import load_module, load_package


def test_module_and_its_siblings_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "flagperf_test_sibling.py").write_text("value = 1\n")
    path = tmp_path / "main.py"
    path.write_text("import flagperf_test_sibling\nvalue = flagperf_test_sibling.value + 1\n")
    before = (list(sys.path), list(sys.meta_path))
    assert load_module(path, "flagperf_test_main").value == 2
    assert "flagperf_test_sibling" not in sys.modules
    assert (sys.path, sys.meta_path) == before


def test_sibling_never_hides_an_installed_module(tmp_path: Path) -> None:
    (tmp_path / "colorsys.py").write_text("raise RuntimeError('the wrong one')\n")
    path = tmp_path / "main.py"
    path.write_text("import colorsys\nfound = colorsys.__file__\n")
    sys.modules.pop("colorsys", None)
    assert Path(load_module(path, "flagperf_test_main").found).parent != tmp_path


def test_module_that_fails_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        load_module(path, "flagperf_test_failing")
    assert "flagperf_test_failing" not in sys.modules


def test_package_with_relative_imports_in_a_folder_that_is_no_name(tmp_path: Path) -> None:
    folder = tmp_path / "bert-pytorch"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .model import width\n")
    (folder / "model.py").write_text("width = 3\n")
    assert load_package(folder, "flagperf_test_package").width == 3


def test_late_relative_import(tmp_path: Path) -> None:
    """A case builds its loaders when it is asked to, long after it was loaded."""
    (tmp_path / "__init__.py").write_text("def late():\n    from .loaders import size\n    return size\n")
    (tmp_path / "loaders.py").write_text("size = 4\n")
    assert load_package(tmp_path, "flagperf_test_late").late() == 4


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match="no such file"):
        load_module(tmp_path / "none.py", "none")
    with pytest.raises(FlagPerfError, match=r"__init__\.py: no such file"):
        load_package(tmp_path, "none")
