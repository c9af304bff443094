"""Fixtures of the stages' tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run_benchmarks.e2e.setup import BASE_IMAGE
from tests.run_benchmarks.plan.tree import make_tree
from tests.run_benchmarks.stages.building import Bench, Index, make_bench, serve_index
from tests.run_benchmarks.stages.checked_host import Site
from tests.run_benchmarks.stages.engines import need_image


@pytest.fixture
def quiet_port() -> Iterator[int]:
    """A port on which nobody can listen while the test runs."""
    with socket.socket() as bound:
        bound.bind(("", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def site(tmp_path: Path, quiet_port: int) -> Site:
    site = Site(tmp_path, make_tree(tmp_path), quiet_port)
    site.hosts("node1", "node2")
    (tmp_path / "data").mkdir()
    site.devices("echo Acme X1; echo Acme X1")
    site.conf("MIN_FREE_DISK_GIB = 0\n")
    return site


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    need_image(BASE_IMAGE)
    with make_bench(tmp_path) as made:
        yield made


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with serve_index(tmp_path) as served:
        yield served
