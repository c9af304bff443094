"""Fixtures of the planner's tests."""

from pathlib import Path

import pytest

from tests.run_benchmarks.plan.tree import Tree, make_tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return make_tree(tmp_path)
