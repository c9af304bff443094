"""Fixtures of the stages' tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run_benchmarks.plan.tree import make_tree
from tests.run_benchmarks.stages.checked_host import Site


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
