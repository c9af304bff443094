"""No regular expression needs more time than grows with its text, whatever that is; and what looks for one finds it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.regexes import uses_of

ROOT = Path(__file__).resolve().parents[1]
TRAINING = ROOT / "training"
CARELESS = {
    "host_ranges": 'import re\nN = re.compile(r"(.*?)(\\d+)(\\D*)")\ndef last(text): return N.fullmatch(text)\n',
    "blank_lines": 'import re\ndef has(text): return re.search(rb"^\\s*import driver", text, re.MULTILINE)\n',
    "mounts": 'import re\ndef mounts(text): return re.findall(r"--mount=(\\S*type=secret\\S*)", text)\n',
    "pinned": 'import re\nKINDS = {"pinned": re.compile(r"[^\\s@]+?[\\w.-]+(:[\\w.-]+|@sha256)")}\n',
    "exponential": 'import re\ndef all_a(text): return re.match("(a+)+$", text)\n',
}
CAREFUL = 'import re\nN = re.compile(r"\\d+:\\d+")\ndef of(text): return N.match(text), re.search("\\\\bx+y", text)\n'


def too_slow_in(folder: Path, limit_s: float) -> list[str]:
    """A line for each expression below the folder that a text of 200,000 characters takes longer than that."""
    paths = os.pathsep.join(map(str, (ROOT, folder)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.regex_time", str(folder), str(limit_s)],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.timeout(3000)  # five minutes of the processor's time, of which a busy machine may give a fifth
def test_no_expression_of_the_tree_is_slow() -> None:
    """A stranger's line of a megabyte would stop a command for hours, and with it all pages of `serve`."""
    assert too_slow_in(TRAINING, 30) == []


def test_expressions_of_constants_and_of_functions_are_found() -> None:
    found = {f"{use.where.partition(':')[0]} {use.method}" for use in uses_of(TRAINING)}
    assert len(found) > 80
    assert "run_benchmarks/plan/redact.py finditer" in found, "in a table of a module"
    assert "run_benchmarks/plan/host_ranges.py fullmatch" in found, "a constant, as it is used"
    assert "run_benchmarks/plan/own_script.py finditer" in found, "written in a function"


def test_careless_expressions_are_found(tmp_path: Path) -> None:
    for name, code in {**CARELESS, "careful": CAREFUL}.items():
        (tmp_path / f"{name}.py").write_text(code)
    assert {line.partition(".py")[0] for line in too_slow_in(tmp_path, 1)} == set(CARELESS)
