"""Fixtures of the image stores' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run_benchmarks.e2e.setup import BASE_IMAGE
from tests.run_benchmarks.images.building import Bench, Index, make_bench, serve_index
from tests.run_benchmarks.images.engines import engine_with


@pytest.fixture(params=["docker", "podman"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """Builds by every engine in turn."""
    with make_bench(tmp_path, engine_with(BASE_IMAGE, request.param)) as made:
        yield made


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with serve_index(tmp_path) as served:
        yield served
