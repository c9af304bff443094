"""The design's rules on who may import whom, held by the tree as it is; and that each rule can tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.structure import RULES, Module, modules_of

TRAINING = Path(__file__).resolve().parents[1] / "training"
Rule = Callable[[Sequence[Module]], list[str]]


@pytest.fixture(scope="module")
def training() -> list[Module]:
    modules = modules_of(TRAINING)
    assert len(modules) > 100  # the tree has been found
    return modules


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Rule, training: list[Module]) -> None:
    assert rule(training) == []


VIOLATIONS = [
    ("upward", "utils/errors.py", "from utils.events import Event", "utils.events of floor 1"),
    ("upward", "run_benchmarks/stages/watch.py", "from run_benchmarks.runner import x", "of floor 3"),
    ("upward", "run_benchmarks/results/judge.py", "from ..run import main", "run_benchmarks.run of floor 4"),
    (
        "upward",
        "benchmarks/driver/loop.py",
        "def f():\n    import benchmarks.toy.case",
        "benchmarks.toy.case",
    ),
    ("circles", "run_benchmarks/runner.py", "import run_benchmarks.round", "leads back"),
    ("foreign", "run_benchmarks/runner.py", "from benchmarks.driver import loop", "benchmarks.driver.loop"),
    ("foreign", "run_benchmarks/runner.py", "import acme.vendor", "acme.vendor"),
    ("foreign", "benchmarks/driver/loop.py", "import run_benchmarks.runner", "run_benchmarks.runner"),
    ("foreign", "benchmarks/driver/loop.py", "from benchmarks.toy import case", "benchmarks.toy.case"),
    ("foreign", "benchmarks/toy/case.py", "from benchmarks.other import model", "benchmarks.other.model"),
    ("foreign", "acme/vendor.py", "import run_benchmarks.runner", "run_benchmarks.runner"),
    ("foreign", "acme/acme_monitor.py", "from benchmarks.driver import loop", "benchmarks.driver"),
    ("packages", "utils/events.py", "import numpy as np", "numpy"),
    ("packages", "run_benchmarks/runner.py", "def f():\n    import torch.distributed", "torch"),
    ("star_imports", "utils/events.py", "from json import *", "star import"),
    ("shells", "utils/events.py", "import subprocess as s\ns.run('ls', shell=1)", "utils/events.py:2"),
    ("shells", "acme/vendor.py", "import os\nos.system('ls')", "acme/vendor.py:2"),
    ("path_edits", "benchmarks/driver/loop.py", "import sys\nsys.path.insert(0, 'x')", "loop.py:2: sys.path"),
    ("vendor_packages", "acme/__init__.py", "", "acme/__init__.py"),
    ("long_files", "utils/events.py", "pass\n" * 400, "400 lines"),
]


@pytest.mark.parametrize(("rule", "file", "text", "found"), VIOLATIONS)
def test_the_rule_finds_a_violation(rule: str, file: str, text: str, found: str, tmp_path: Path) -> None:
    tree = {
        "utils/errors.py": "",
        "utils/events.py": "from utils.errors import x",
        "run_benchmarks/verbs/run.py": "import run_benchmarks.runner\nimport rich.table",
        "run_benchmarks/runner.py": "import run_benchmarks.stages.watch\nimport asyncio",
        "run_benchmarks/round.py": "import run_benchmarks.runner",
        "run_benchmarks/run.py": "import sys\nsys.path[0] = '.'\nimport run_benchmarks.verbs.run",
        "run_benchmarks/stages/watch.py": "import utils.events",
        "benchmarks/driver/loop.py": "import utils.events\nimport torch",
        "benchmarks/toy/case.py": "from benchmarks.driver import loop\nfrom . import model",
        "benchmarks/toy/model.py": "",
        "benchmarks/other/model.py": "",
        "acme/vendor.py": "from utils import events\n",
        "acme/toy-pytorch/extern/hooks.py": "import benchmarks.driver.loop",
        "acme/toy-pytorch/config/config_X1x1x1.py": "from config_common import *",
    }
    rules = {each.__name__: each for each in RULES}
    _write(tmp_path, tree)
    assert [problem for each in RULES for problem in each(modules_of(tmp_path))] == []
    _write(tmp_path, {file: text})
    problems = rules[rule](modules_of(tmp_path))
    assert any(found in problem for problem in problems), problems


def _write(root: Path, tree: dict[str, str]) -> None:
    for name, text in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
