"""The whole cases that the documents show run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.arguments import LaunchArguments
from run_benchmarks.plan.case_code import check_case_code
from run_benchmarks.plan.problems import Problems
from tests.benchmarks.driver.ranks import run_here, values_of
from utils.config_files import load_constants

ROOT = Path(__file__).resolve().parents[2]
# `path`, with a remark or not, and the file's text below it.
FILE = re.compile(
    r"^`((?:benchmarks|cpu)/[^`]+)`[^\n]*(?:\n[^\n]+)*?\n\n```python\n(.*?)^```", re.DOTALL | re.MULTILINE
)


def _write_out(document: str, model: str, folder: Path) -> Path:
    """The files of a case as the document has them; the case's folder."""
    texts = {path: text for path, text in FILE.findall((ROOT / document).read_text()) if model in path}
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    case = folder / "benchmarks" / model / "pytorch"
    (case / "__init__.py").touch()
    return case


@pytest.mark.parametrize(
    ("document", "model", "kind", "metric"),
    [
        ("docs/adding-a-case.md", "line", "converge", "r_squared"),
        ("CONTRIBUTING.md", "memory_copy", "measure", ""),
    ],
)
def test_a_documented_case_runs(
    tmp_path: Path, capsys: Any, document: str, model: str, kind: str, metric: str
) -> None:
    case, problems = _write_out(document, model, tmp_path), Problems()
    check_case_code(case, kind, metric, problems)
    assert not problems.all
    assert list((tmp_path / "cpu" / f"{model}-pytorch" / "config").glob("config_cpux1x?.py"))
    short = {"windows": 20, "window_seconds": 0.01, "buffer_mib": 1, "max_warmup_windows": 3}
    overrides = short if kind == "measure" else {}
    events = run_here(
        capsys, LaunchArguments(case, tmp_path, vendor="cpu", overrides={**overrides, "cpu_threads": 1})
    )
    (finished,) = values_of(events, "FINISHED")
    if kind == "measure":
        assert list(finished["figures"]) == ["copy", "copy_spread"]
    else:
        assert finished["converged"] is True
        assert finished["target"] == load_constants(case / "config" / "_base.py")["target_r_squared"]
