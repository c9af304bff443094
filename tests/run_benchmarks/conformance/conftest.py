"""A vendor as `vendor new` writes it, beside the real cases."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.conformance.new import make_vendor
from tests.run_benchmarks.plan.tree import copy_code

TRAINING = Path(__file__).resolve().parents[3] / "training"


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit") / "training"
    copy_code(TRAINING / "benchmarks", folder / "benchmarks")
    return folder


@pytest.fixture
def acme(training: Path) -> Iterator[Path]:
    make_vendor("acme", "A1", training)
    yield training / "acme"
    shutil.rmtree(training / "acme")


def edit(path: Path, old: str, new: str) -> None:
    """Put a fault where `old` stands."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
