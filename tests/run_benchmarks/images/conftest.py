"""Fixtures of the image stores' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run_benchmarks.e2e.setup import BASE_IMAGE
from tests.run_benchmarks.images.building import Bench, Index, make_bench, serve_index
from tests.run_benchmarks.images.engines import need_image


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    need_image(BASE_IMAGE)
    with make_bench(tmp_path) as made:
        yield made


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with serve_index(tmp_path) as served:
        yield served
